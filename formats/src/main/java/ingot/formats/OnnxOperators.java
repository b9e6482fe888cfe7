package ingot.formats;

import java.util.HashMap;
import java.util.Map;

/// The operators that have a meaning here, by name; those of other domains with the domain before it.
final class OnnxOperators {
    private static final Map<String, OnnxOperator> TABLE = new HashMap<>();

    static {
        OnnxMath.addTo(TABLE);
        OnnxElementary.addTo(TABLE);
        OnnxReductions.addTo(TABLE);
        OnnxContractions.addTo(TABLE);
        OnnxShapes.addTo(TABLE);
        OnnxIndexing.addTo(TABLE);
        OnnxWindows.addTo(TABLE);
        OnnxNormalisation.addTo(TABLE);
        OnnxAttention.addTo(TABLE);
        OnnxLosses.addTo(TABLE);
        OnnxResize.addTo(TABLE);
        OnnxQuantized.addTo(TABLE);
        OnnxRecurrent.addTo(TABLE);
        OnnxControl.addTo(TABLE);
        OnnxSequences.addTo(TABLE);
        OnnxSignals.addTo(TABLE);
        OnnxRandom.addTo(TABLE);
        OnnxDetection.addTo(TABLE);
        OnnxOptimizers.addTo(TABLE);
    }

    private OnnxOperators() {}

    static Map<String, OnnxOperator> table() {
        return Map.copyOf(TABLE);
    }
}
