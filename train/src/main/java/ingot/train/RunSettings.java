package ingot.train;

import java.util.List;
import java.util.SequencedMap;

/// What every run says, whatever it trains.
public sealed interface RunSettings permits RunConfig, FineTuneConfig, ImageConfig {
    /// Reads what any kind of run says, as YAML text; each override is `key.path=value` and wins over the text.
    static RunSettings parse(String yaml, List<String> overrides) {
        Section root = ConfigText.root(yaml, overrides);
        if (ImageConfig.is(root)) {
            return ImageConfig.read(root);
        }
        return root.has("task") ? FineTuneConfig.parse(yaml, overrides) : RunConfig.parse(yaml, overrides);
    }

    /// Folder of the run.
    String run();

    /// Threads of the backend; 0 means one per core. Never changes a bit.
    int threads();

    /// What the process may use, such as `1GiB`; empty: what the machine has. Never changes a bit.
    String memory();

    RunConfig.TrainConfig train();

    /// The whole configuration, defaults included; parses back to an equal record.
    String toYaml();

    /// The keys that decide the bits of a run, `train.batch` → `16`: what a resumed run must share with the one that
    /// began.
    SequencedMap<String, String> identity();
}
