package ingot.cpu;

/// How wide the vectors are that the kernels use: read once, from the machine and the property `ingot.vector`
/// (`auto`, `off`, `128`, `256`, `512`). It changes speed, never a bit.
///
/// Nothing here names a class of the vector module, which may be absent: then [#LANES] is 1 and the scalar kernels run.
final class Simd {
    /// Floats per vector; 1 = no vector module, or switched off.
    static final int LANES = lanes();

    private Simd() {}

    static boolean available() {
        return LANES > 1;
    }

    private static int lanes() {
        var wanted = System.getProperty("ingot.vector", "auto");
        if (wanted.equals("off") || !modulePresent()) {
            return 1;
        }
        return switch (wanted) {
            case "128", "256", "512" -> Integer.parseInt(wanted) / 32;
            default -> Math.clamp(VectorRows.preferredLanes(), 4, 16);
        };
    }

    private static boolean modulePresent() {
        try {
            Class.forName("jdk.incubator.vector.FloatVector", false, Simd.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }
}
