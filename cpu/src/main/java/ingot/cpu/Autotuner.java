package ingot.cpu;

import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Chooses the [Tiling] of a matmul by timing a few candidates on a small sample of its shape.
///
/// Candidates are warmed alone first and timed in CPU time of one thread, so that neither the JIT nor a busy machine
/// decides; what stays slow is rejected. Choices are kept per class of shape in a [TilingCache] file. Every tiling
/// gives the same bits, so a choice can cost speed and nothing else.
public final class Autotuner {
    private static final double GAIN = 0.95; // of the time of the best so far, in most of the duels
    private static final int DUELS = 9;
    private static final double SAMPLE_FLOPS = 1.5e8;
    private static final double WORTH_FLOPS = 4e6;
    private static final long SAMPLE_BYTES = 64L << 20;
    private static final long BUDGET = 4_000_000_000L; // CPU ns of timing per process
    private static final double CATASTROPHE = 4; // times the time of one thread

    private final @Nullable TilingCache cache;
    private final Warming warming;
    private final Map<String, Tiling> chosen = new LinkedHashMap<>();
    private long spent;

    private Autotuner(@Nullable TilingCache cache, Warming warming) {
        this.cache = cache;
        this.warming = warming;
        if (cache != null) {
            chosen.putAll(cache.read());
        }
    }

    /// Keeps its choices in the machine's cache folder; the property `ingot.tune=off` makes it [#off].
    public static Autotuner ofMachine() {
        return System.getProperty("ingot.tune", "on").equals("off")
                ? off()
                : new Autotuner(TilingCache.ofMachine(), Warming.FIRST);
    }

    /// Keeps its choices in `file`.
    public static Autotuner of(java.nio.file.Path file) {
        return new Autotuner(new TilingCache(file), Warming.FIRST);
    }

    /// Times nothing and takes what [#ofMachine] has chosen before; scalar code computes until vector code is hot. For
    /// commands that are over in seconds.
    public static Autotuner known() {
        return new Autotuner(
                System.getProperty("ingot.tune", "on").equals("off") ? null : TilingCache.ofMachine(), Warming.BESIDE);
    }

    /// Times nothing: every plan takes the default.
    public static Autotuner off() {
        return new Autotuner(null, Warming.NONE);
    }

    /// How plans for a shape should warm their kernels.
    Warming warming(MatmulShape shape) {
        return warming == Warming.FIRST && shape.flops() < WORTH_FLOPS ? Warming.NONE : warming;
    }

    /// The tiling for a shape that runs as it stands (not transposed).
    synchronized Tiling choose(MatmulShape shape, int threads) {
        var fallback = Tilings.of(shape, threads);
        if (cache == null || shape.flops() < WORTH_FLOPS) {
            return fallback;
        }
        var name = classOf(shape, threads);
        var known = chosen.get(name);
        if (known != null && known.lanes() == Simd.LANES) {
            return known;
        }
        if (spent > BUDGET || warming != Warming.FIRST) {
            return fallback;
        }
        var best = time(shape, fallback, threads);
        chosen.put(name, best);
        cache.write(chosen);
        return best;
    }

    /// Sizes to two bits of precision and which axes are contiguous: shapes that one tiling suits.
    static String classOf(MatmulShape s, int threads) {
        return String.join(
                " ",
                "b" + rough(s.batches()),
                "m" + rough(s.m()),
                "n" + rough(s.n()),
                "k" + rough(s.k()),
                "s" + s.segments(),
                (s.a().column() == 1 ? "a-k" : s.a().row() == 1 ? "a-m" : "a-x"),
                (s.b().column() == 1 ? "b-n" : s.b().row() == 1 ? "b-k" : "b-x"),
                (s.oneB() ? "one-b" : "own-b"),
                "t" + threads);
    }

    private static int rough(int size) {
        int shift = Math.max(0, 30 - Integer.numberOfLeadingZeros(size));
        return Math.ceilDiv(size, 1 << shift) << shift;
    }

    private Tiling time(MatmulShape shape, Tiling fallback, int threads) {
        var sample = sample(shape);
        long a = span(sample, sample.a(), sample.m(), sample.k());
        long b = span(sample, sample.b(), sample.k(), sample.n());
        long c = span(sample, sample.c(), sample.m(), sample.n());
        if (a < 0 || b < 0 || c < 0 || 4 * (a + b + c) > SAMPLE_BYTES) {
            return fallback;
        }
        long start = CpuClock.now();
        try (var arena = Arena.ofConfined();
                var alone = new TilePool(1)) {
            var trial = new Trial(sample, ones(arena, a), ones(arena, b), ones(arena, c), arena, alone);
            var best = fallback;
            boolean bestIsFast = warm(shape, best);
            for (int round = 0; round < 3; round++) {
                var candidates = switch (round) {
                    case 0 -> Tilings.otherTiles(best, sample, threads);
                    case 1 -> Tilings.otherPackings(best, sample);
                    default -> Tilings.otherBlocks(best, sample);
                };
                for (var candidate : candidates) {
                    if (CpuClock.now() - start + spent > BUDGET || !warm(shape, candidate)) {
                        continue;
                    }
                    if (!bestIsFast || trial.isFaster(candidate, best)) {
                        best = candidate;
                        bestIsFast = true;
                    }
                }
            }
            if (threads > 1 && bestIsFast) {
                verify(trial, shape, best, threads);
            }
            return fit(best, shape, threads);
        } finally {
            spent += CpuClock.now() - start;
        }
    }

    /// The blocks were chosen on a sample; the whole shape gets its own.
    private static Tiling fit(Tiling best, MatmulShape shape, int threads) {
        var whole = Tilings.withTile(shape, threads, best.rows(), best.vectors());
        return whole.withBlocks(
                        best.b() == Tiling.Packing.SHARED ? best.mBlock() : whole.mBlock(),
                        whole.nBlock(),
                        best.kBlock())
                .withPacking(best.a(), best.b());
    }

    /// Runs the choice on all threads once; kernels that fall off a cliff there are defined afresh.
    private static void verify(Trial trial, MatmulShape shape, Tiling tiling, int threads) {
        try (var pool = new TilePool(threads)) {
            if (trial.wallTime(tiling, pool) > CATASTROPHE * trial.wallTime(tiling, trial.alone)) {
                for (var call : plan(shape, tiling).calls()) {
                    MicroKernels.warmAgain(tiling, call.layout(), call.start());
                }
            }
        }
    }

    private static BlockedMatmul plan(MatmulShape shape, Tiling tiling) {
        return new BlockedMatmul(shape, tiling, Epilogue.NONE, false, false, Warming.NONE, BlockedMatmul.PHASE_BYTES);
    }

    /// Warms every kernel the shape's plan calls; false if one stays slow.
    private static boolean warm(MatmulShape shape, Tiling tiling) {
        boolean fast = true;
        for (var call : plan(shape, tiling).calls()) {
            fast &= MicroKernels.warm(tiling, call.layout(), call.start());
        }
        return fast;
    }

    /// A shape with the layout of `s` and few enough operations to run many times.
    static MatmulShape sample(MatmulShape s) {
        int segments = Math.min(s.segments(), 4);
        int k = Math.min(s.k() / s.segments(), 2048 / segments) * segments;
        int batch2 = Math.min(s.batch2(), 2);
        int n = Math.min(s.n(), 512);
        double rest = SAMPLE_FLOPS / (2.0 * batch2 * n * Math.max(1, k));
        int m = Math.min(s.m(), Math.max(96, (int) Math.min(1024, rest)));
        return new MatmulShape(1, 1, batch2, m, n, k, segments, s.a(), s.b(), s.c());
    }

    private static long span(MatmulShape s, MatmulShape.Strides t, int rows, int columns) {
        if (t.batch2() < 0 || t.row() < 0 || t.column() < 0) {
            return -1;
        }
        return 1 + (s.batch2() - 1) * t.batch2() + (rows - 1L) * t.row() + (columns - 1L) * t.column();
    }

    private static long ones(Arena arena, long count) {
        long bytes = 4 * count;
        long address = arena.allocate(bytes, 64).address();
        Memory.putFloat(address, 1f);
        for (long done = 4; done < bytes; done *= 2) {
            Memory.copy(address, address + done, Math.min(done, bytes - done));
        }
        return address;
    }

    private record Trial(MatmulShape shape, long a, long b, long c, Arena arena, TilePool alone) {
        /// Runs the two by turns and compares each pair, since the clock of a shared machine wanders by more than the
        /// difference; the median pair and the fastest runs must agree.
        boolean isFaster(Tiling candidate, Tiling best) {
            var challenger = plan(shape, candidate);
            var holder = plan(shape, best);
            long scratch = arena.allocate(Math.max(challenger.scratchBytes(1), holder.scratchBytes(1)), 64)
                    .address();
            double[] ratios = new double[DUELS];
            double fastest = Double.MAX_VALUE;
            double fastestHolder = Double.MAX_VALUE;
            for (int i = -1; i < DUELS; i++) { // the first pair only warms
                double holderTime = time(holder, scratch);
                double time = time(challenger, scratch);
                if (i >= 0) {
                    ratios[i] = time / holderTime;
                    fastest = Math.min(fastest, time);
                    fastestHolder = Math.min(fastestHolder, holderTime);
                }
            }
            Arrays.sort(ratios);
            return ratios[DUELS / 2] < GAIN && fastest < GAIN * fastestHolder;
        }

        private double time(BlockedMatmul plan, long scratch) {
            long start = CpuClock.now();
            plan.run(alone, a, b, c, 0, scratch);
            return Math.max(1, CpuClock.now() - start);
        }

        double wallTime(Tiling tiling, TilePool pool) {
            var plan = plan(shape, tiling);
            long scratch = arena.allocate(plan.scratchBytes(pool.threads()), 64).address();
            double best = Double.MAX_VALUE;
            for (int i = 0; i < 4; i++) {
                long start = System.nanoTime();
                plan.run(pool, a, b, c, 0, scratch);
                best = Math.min(best, System.nanoTime() - start);
            }
            return best;
        }
    }

    /// What has been chosen so far, for reports.
    public synchronized List<String> choices() {
        return chosen.entrySet().stream()
                .map(e -> e.getKey() + ": " + e.getValue().text())
                .toList();
    }
}
