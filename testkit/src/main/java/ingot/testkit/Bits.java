package ingot.testkit;

import ingot.ir.DType;
import ingot.ir.Tensor;
import java.util.Arrays;
import java.util.Map;
import java.util.Objects;

/// Assertions of the numeric contract: equal bits, any NaN equal to any NaN.
public final class Bits {
    private Bits() {}

    /// Fails with the first differing index, both values and their bits.
    public static void assertSameBits(Tensor expected, Tensor actual, String what) {
        if (!expected.type().equals(actual.type())) {
            throw new AssertionError(what + ": expected " + expected.type() + ", got " + actual.type());
        }
        if (expected.sameBits(actual)) {
            return;
        }
        long n = expected.shape().elements();
        long first = -1;
        long differing = 0;
        for (long i = 0; i < n; i++) {
            if (!same(expected, actual, i)) {
                first = differing == 0 ? i : first;
                differing++;
            }
        }
        throw new AssertionError("%s : %s: %d of %d elements differ, first at %s: expected %s, got %s"
                .formatted(
                        what,
                        expected.type(),
                        differing,
                        n,
                        Arrays.toString(index(expected, first)),
                        shown(expected, first),
                        shown(actual, first)));
    }

    /// The same for every entry; both maps have the same keys.
    public static void assertSameBits(Map<String, Tensor> expected, Map<String, Tensor> actual, String what) {
        if (!expected.keySet().equals(actual.keySet())) {
            throw new AssertionError(what + ": expected " + expected.keySet() + ", got " + actual.keySet());
        }
        expected.forEach(
                (key, tensor) -> assertSameBits(tensor, Objects.requireNonNull(actual.get(key)), what + ": " + key));
    }

    private static boolean same(Tensor a, Tensor b, long i) {
        return a.type().dtype().isFloating()
                ? Float.floatToIntBits(a.getFloat(i)) == Float.floatToIntBits(b.getFloat(i))
                : a.getLong(i) == b.getLong(i);
    }

    private static String shown(Tensor t, long i) {
        if (!t.type().dtype().isFloating()) {
            return Long.toString(t.getLong(i));
        }
        float value = t.getFloat(i);
        int bits = Float.floatToRawIntBits(value);
        return t.type().dtype() == DType.F32 ? "%s (0x%08x)".formatted(value, bits) : Float.toString(value);
    }

    private static int[] index(Tensor t, long flat) {
        int[] index = new int[t.shape().rank()];
        for (int axis = index.length - 1; axis >= 0; axis--) {
            index[axis] = (int) (flat % t.shape().dim(axis));
            flat /= t.shape().dim(axis);
        }
        return index;
    }
}
