package ingot.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import ingot.ir.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;

/// The PyTorch reference, `shared/reference` beside the checkout or where the property `ingot.reference` says, and how
/// far results are from it.
public final class Reference {
    private Reference() {}

    /// The folder of a case. Skips the calling test, saying so, when the reference is not there.
    public static Path orSkip(String name) {
        String property = System.getProperty("ingot.reference");
        Path found = property == null ? null : Path.of(property);
        for (Path at = Path.of("").toAbsolutePath(); at != null && found == null; at = at.getParent()) {
            Path candidate = at.resolve("shared/reference");
            found = Files.isDirectory(candidate) ? candidate : null;
        }
        if (found == null || !Files.isDirectory(found.resolve(name))) {
            System.err.println("SKIPPED: no reference case " + name
                    + "; it is looked for in ../shared/reference of the checkout or -Dingot.reference=FOLDER");
            return abort("no reference case " + name);
        }
        return found.resolve(name);
    }

    /// The largest difference of any two elements; the types must be equal.
    public static double difference(Tensor found, Tensor expected) {
        assertThat(found.type()).isEqualTo(expected.type());
        float[] difference = found.toFloats();
        float[] other = expected.toFloats();
        for (int i = 0; i < difference.length; i++) {
            difference[i] -= other[i];
        }
        return largest(difference);
    }

    /// The largest absolute value; a NaN is infinite.
    public static double largest(float[] values) {
        double largest = 0;
        for (float value : values) {
            largest = Math.max(largest, Float.isNaN(value) ? Double.POSITIVE_INFINITY : Math.abs(value));
        }
        return largest;
    }
}
