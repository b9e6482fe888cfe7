package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.KernelInterpreter;
import ingot.compiler.Layout;
import ingot.ir.DType;
import ingot.ir.Op;
import ingot.ir.Value;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/// Kernels as bytecode for this machine: every kernel is prepared once, its tiles run on the threads of a pool.
///
/// An executable runs one call at a time. Threads, vector width and the moment at which vector code takes over from
/// scalar code change the speed and never a bit.
public final class CpuBackend implements Backend {
    private final Crew crew;
    private final int lanes;
    private final Autotuner tuner;
    private final PassCache passes;
    private final Map<Kernel, Executable> executables = new HashMap<>();

    /// The vectors of this machine.
    public CpuBackend(TilePool pool) {
        this(pool, Simd.LANES);
    }

    /// The vectors of this machine, matmuls timed by `tuner`.
    public CpuBackend(TilePool pool, Autotuner tuner) {
        this(pool, Simd.LANES, false, tuner);
    }

    /// `lanes`: floats per vector, 4, 8 or 16; 1 for scalar code, which needs no vector module.
    public CpuBackend(TilePool pool, int lanes) {
        this(pool, lanes, false, Autotuner.off());
    }

    /// `eager`: vector code from the first call, for tests.
    CpuBackend(TilePool pool, int lanes, boolean eager) {
        this(pool, lanes, eager, Autotuner.off());
    }

    private CpuBackend(TilePool pool, int lanes, boolean eager, Autotuner tuner) {
        if (lanes != 1 && lanes != 4 && lanes != 8 && lanes != 16) {
            throw new IllegalArgumentException("cpu backend: 1, 4, 8 or 16 lanes expected, got " + lanes);
        }
        this.lanes = lanes;
        this.tuner = tuner;
        crew = new Crew(pool);
        passes = new PassCache(lanes, eager);
    }

    @Override
    public synchronized Executable prepare(Kernel kernel) {
        return executables.computeIfAbsent(kernel, this::compile);
    }

    @Override
    public Backend background() {
        return new CpuBackend(new TilePool(1), lanes);
    }

    @Override
    public Session session() {
        return crew.pool().session();
    }

    @Override
    public String describe() {
        return "cpu, " + crew.threads() + (crew.threads() == 1 ? " thread, " : " threads, ")
                + (lanes == 1 ? "scalar code" : 32 * lanes + "-bit vectors");
    }

    private Executable compile(Kernel kernel) {
        try {
            return switch (kernel) {
                case Kernel.Map map -> new MapExecutable(map, crew, passes);
                case Kernel.Row row -> new RowExecutable(row, crew, passes);
                case Kernel.Column column -> new ColumnExecutable(column, crew, passes);
                case Kernel.Matmul matmul when isFloat(matmul) -> new MatmulExecutable(matmul, crew, tuner);
                case Kernel.Convolution convolution
                when isFloat(convolution) -> new ConvolutionExecutable(convolution, crew, tuner);
                case Kernel.Gather gather when isNarrow(gather) -> new GatherExecutable(gather, crew, passes);
                case Kernel.ScatterAdd scatter
                when isNarrow(scatter) && scatter.out().dtype() != DType.BOOL ->
                    new ScatterAddExecutable(scatter, crew, passes);
                case Kernel.Loop loop -> loop(loop);
                case Kernel.Matmul _, Kernel.Convolution _, Kernel.Gather _, Kernel.ScatterAdd _ ->
                    new Interpreted(kernel);
            };
        } catch (UnsupportedPassException e) {
            return new Interpreted(kernel);
        }
    }

    /// Conversions, pooling and gathers of bytes have code of their own.
    private Executable loop(Kernel.Loop loop) {
        Executable convert = ConvertExecutable.of(loop, crew);
        if (convert != null) {
            return convert;
        }
        Executable window = WindowExecutable.of(loop, crew);
        if (window != null) {
            return window;
        }
        if (loop.body().output("0").op() instanceof Op.Gather(Value table, Value indices, int axis)
                && axis == 0
                && table.dtype().bytes() == 1
                && table.op() instanceof Op.Input(String first, _)
                && first.equals("0")
                && indices.op() instanceof Op.Input
                && indices.dtype() == DType.I32
                && loop.reads().size() == 2) {
            Kernel.Gather gather = new Kernel.Gather(
                    bytes(loop.reads().get(0)),
                    loop.reads().get(1),
                    bytes(loop.writes().get(0)));
            return new GatherExecutable(gather, crew, passes);
        }
        return new Interpreted(loop);
    }

    /// The same bytes under the type of bytes that gathers know.
    private static Layout bytes(Layout layout) {
        return new Layout(DType.BOOL, layout.shape(), layout.offset(), layout.strides());
    }

    private static boolean isFloat(Kernel kernel) {
        return layouts(kernel).allMatch(dtype -> dtype == DType.F32);
    }

    private static boolean isNarrow(Kernel kernel) {
        return layouts(kernel).allMatch(dtype -> dtype == DType.F32 || dtype == DType.I32 || dtype == DType.BOOL);
    }

    private static Stream<DType> layouts(Kernel kernel) {
        return Stream.concat(kernel.reads().stream(), kernel.writes().stream()).map(layout -> layout.dtype());
    }

    /// A kernel without code of its own, by the reference interpreter.
    private record Interpreted(Kernel kernel) implements Executable {
        @Override
        public long scratchBytes() {
            return 0;
        }

        @Override
        public void run(long[] addresses, long scratch) {
            KernelInterpreter.run(kernel, addresses);
        }
    }
}
