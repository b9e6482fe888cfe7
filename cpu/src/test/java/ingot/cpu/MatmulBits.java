package ingot.cpu;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Random;

/// Prints one SHA-256 over the results of several matmuls: run in other JVMs, which must print the same.
final class MatmulBits {
    private MatmulBits() {}

    public static void main(String[] arguments) throws Exception {
        System.out.println("lanes " + Simd.LANES);
        System.out.println(hash());
    }

    static String hash() throws Exception {
        var digest = MessageDigest.getInstance("SHA-256");
        var random = new Random(11);
        MatmulShape[] shapes = {
            MatmulShape.of(61, 75, 90),
            MatmulShape.of(1, 300, 50),
            MatmulShape.of(50, 130, 64).withSegments(8),
            MatmulShape.of(
                    new long[] {3}, 20, 33, 40, 1, new long[] {800, 1, 20}, new long[] {1320, 1, 40}, new long[] {
                        660, 33, 1
                    })
        };
        try (var arena = Arena.ofConfined();
                var pool = new TilePool(2)) {
            for (var shape : shapes) {
                var matmul = Matmul.of(shape, Matmul.Options.DEFAULT.withBias());
                var c = arena.allocate(4L * shape.batches() * shape.m() * shape.n());
                matmul.run(
                        pool,
                        numbers(arena, random, shape.batches() * shape.m() * shape.k()),
                        numbers(arena, random, shape.batches() * shape.k() * shape.n()),
                        c.address(),
                        numbers(arena, random, shape.n()),
                        arena.allocate(matmul.scratchBytes(2)).address());
                digest.update(c.toArray(ValueLayout.JAVA_BYTE));
            }
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private static long numbers(Arena arena, Random random, int count) {
        float[] numbers = new float[count];
        for (int i = 0; i < count; i++) {
            numbers[i] = (float) random.nextGaussian();
        }
        return arena.allocateFrom(ValueLayout.JAVA_FLOAT, numbers).address();
    }
}
