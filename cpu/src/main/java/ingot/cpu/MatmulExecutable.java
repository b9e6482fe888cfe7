package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// A matmul kernel: the engine takes three batch axes; what is left of more, after merging, is looped over.
final class MatmulExecutable implements Backend.Executable {
    private static final int A = 0;
    private static final int B = 1;
    private static final int C = 2;

    private final Crew crew;
    private final Matmul.Options options;
    private final Matmul matmul;
    private final Loops loops;
    private final @Nullable Layout bias;
    private final boolean copiesBias;

    MatmulExecutable(Kernel.Matmul kernel, Crew crew, Autotuner tuner) {
        this.crew = crew;
        int axes = kernel.c().shape().rank() - 2;
        int[] batch = Arrays.copyOf(kernel.c().shape().dims(), axes);
        long[][] steps = {strides(kernel.a()), strides(kernel.b()), strides(kernel.c())};
        Loops merged = Loops.over(batch, new long[][] {
            Arrays.copyOf(steps[A], axes), Arrays.copyOf(steps[B], axes), Arrays.copyOf(steps[C], axes)
        });
        int left = merged.outer().length;
        int taken = Math.min(3, left + 1); // the innermost and up to two more
        long[] sizes = new long[taken];
        long[][] operands = new long[3][taken + 2];
        for (int t = 0; t < taken; t++) {
            int axis = left + 1 - taken + t;
            sizes[t] = axis == left ? merged.inner() : merged.outer()[axis];
            for (int k = 0; k < 3; k++) {
                operands[k][t] = axis == left ? merged.innerSteps()[k] : merged.outerSteps()[axis][k];
            }
        }
        for (int k = 0; k < 3; k++) {
            System.arraycopy(steps[k], axes, operands[k], taken, 2);
        }
        int kept = left + 1 - taken;
        long[][] bytes = Arrays.stream(Arrays.copyOf(merged.outerSteps(), kept))
                .map(moves -> Arrays.stream(moves).map(move -> 4 * move).toArray())
                .toArray(long[][]::new);
        loops = new Loops(Arrays.copyOf(merged.outer(), kept), bytes, 1, new long[3]);
        var shape = MatmulShape.of(
                sizes,
                kernel.c().shape().dim(-2),
                kernel.c().shape().dim(-1),
                kernel.a().shape().dim(-1),
                kernel.segments(),
                operands[A],
                operands[B],
                operands[C]);
        bias = kernel.bias();
        copiesBias = bias != null && bias.strides().getFirst() != 1;
        options = new Matmul.Options(kernel.old(), bias != null, crew.threads(), tuner);
        matmul = Matmul.of(shape, options);
    }

    private MatmulExecutable(MatmulExecutable other, Matmul matmul) {
        this.matmul = matmul;
        crew = other.crew;
        options = other.options;
        loops = other.loops;
        bias = other.bias;
        copiesBias = other.copiesBias;
    }

    /// The operand packed, if all batches share it.
    @Override
    public Backend.@Nullable Packed packed(int read) {
        Matmul ready = read == matmul.packedOperand() && loops.rows() == 1 ? matmul.ready(options) : null;
        return ready == null
                ? null
                : new Backend.Packed(
                        ready.order(),
                        ready.packedBytes(),
                        (from, to) -> ready.pack(crew.pool(), from, to),
                        new MatmulExecutable(this, ready));
    }

    private static long[] strides(Layout layout) {
        return layout.strides().stream().mapToLong(Long::longValue).toArray();
    }

    private long biasBytes() {
        return bias == null || !copiesBias ? 0 : (bias.type().bytes() + 63) / 64 * 64;
    }

    @Override
    public long scratchBytes() {
        return biasBytes() + matmul.scratchBytes(crew.threads());
    }

    @Override
    public void run(long[] addresses, long scratch) {
        long biasAt = 0;
        if (bias != null) {
            biasAt = addresses[2];
            if (copiesBias) {
                for (int j = 0; j < bias.shape().dim(0); j++) {
                    Memory.putFloat(
                            scratch + 4L * j,
                            Memory.getFloat(biasAt + 4 * j * bias.strides().getFirst()));
                }
                biasAt = scratch;
            }
        }
        long[] at = {addresses[A], addresses[B], addresses[addresses.length - 1]};
        int[] index = new int[loops.outer().length];
        for (long batch = loops.rows(); batch > 0; batch--) {
            matmul.run(crew.pool(), at[A], at[B], at[C], biasAt, scratch + biasBytes());
            loops.next(index, at);
        }
    }
}
