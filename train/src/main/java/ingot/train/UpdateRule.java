package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Buffer;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// An optimizer compiled: its step on pieces of weights, in place, over memory that comes with every call.
///
/// Updates are elementwise, so the bits do not depend on how a weight is cut into pieces. One rule serves one caller at
/// a time; rules with a backend each may run at the same time.
final class UpdateRule implements AutoCloseable {
    private static final String SCALE = "scale";

    private final Optimizer optimizer;
    private final Backend backend;
    private final RamStore none = new RamStore();
    private final Arena arena = Arena.ofShared();
    private final Map<String, MemorySegment> scalars = new LinkedHashMap<>();
    private final Map<Piece, Executor> executors = new HashMap<>();

    /// Pieces of equal size and rule share their code.
    private record Piece(int elements, Parameter.Rule rule) {}

    /// Compiles what chunks of `chunk` elements of the parameters need; other sizes are compiled when they first come.
    UpdateRule(Optimizer optimizer, List<Parameter> parameters, int chunk, Backend backend) {
        this.optimizer = optimizer;
        this.backend = backend;
        Set<String> names = new HashSet<>(optimizer.scalars(0, 0).keySet());
        names.add(SCALE);
        names.forEach(name -> scalars.put(name, arena.allocate(64, 64)));
        for (Parameter parameter : parameters) {
            for (int size : new Chunks(parameter.type().shape().elements(), chunk).sizes()) {
                executors.computeIfAbsent(new Piece(size, parameter.rule()), this::compile);
            }
        }
    }

    /// What all pieces of update number `step` have in common; gradients are multiplied by `scale` first.
    void scalars(long step, double learningRate, float scale) {
        Map<String, Float> values = new HashMap<>(optimizer.scalars(step, learningRate));
        values.put(SCALE, scale);
        values.forEach((name, value) -> scalar(name).set(ValueLayout.JAVA_FLOAT, 0, value));
    }

    /// Updates `elements` elements of a weight and its moments, in the order of `Optimizer.moments`. The memory is
    /// 64-byte aligned.
    void apply(
            int elements,
            Parameter.Rule kind,
            MemorySegment weight,
            List<MemorySegment> moments,
            MemorySegment gradient) {
        List<String> names = optimizer.moments();
        if (moments.size() != names.size()) {
            throw new IllegalArgumentException(
                    "update: expected memory for the moments " + names + ", got " + moments.size() + " pieces");
        }
        Executor executor = executors.computeIfAbsent(new Piece(elements, kind), this::compile);
        inPlace(executor, "weight", weight, elements);
        for (int i = 0; i < moments.size(); i++) {
            inPlace(executor, names.get(i), moments.get(i), elements);
        }
        executor.bind(new Buffer.Input("gradient"), checked("gradient", gradient, elements));
        executor.run(StageUpdates.NONE);
    }

    /// Bytes of off-heap memory held.
    long allocatedBytes() {
        return 64L * scalars.size()
                + executors.values().stream()
                        .mapToLong(Executor::allocatedBytes)
                        .sum();
    }

    private Executor compile(Piece piece) {
        Map<String, String> inPlace = new HashMap<>(Map.of("weight", "weight"));
        if (piece.rule() != Parameter.Rule.RUNNING) {
            optimizer.moments().forEach(moment -> inPlace.put(moment, moment));
        }
        Program program = Compiler.update(graph(piece), inPlace);
        Executor executor =
                new Executor(program, backend, none, program.inputs().keySet());
        scalars.forEach((name, memory) -> executor.bind(new Buffer.Input(name), memory));
        return executor;
    }

    private Graph graph(Piece piece) {
        return switch (piece.rule()) {
            case PLAIN -> optimizer.update(piece.elements(), false);
            case DECAY -> optimizer.update(piece.elements(), true);
            // a running statistic goes as far as its gradient says; its moments stay zero
            case RUNNING -> {
                GraphBuilder b = new GraphBuilder("running");
                Type type = Type.f32(piece.elements());
                b.output("weight", b.subtract(b.input("weight", type), b.input("gradient", type)));
                yield b.build();
            }
        };
    }

    private static void inPlace(Executor executor, String name, MemorySegment memory, int elements) {
        executor.bind(new Buffer.Input(name), checked(name, memory, elements));
        executor.bind(new Buffer.Output(name), memory);
    }

    /// Kernels work on addresses: memory that is too small would be overrun.
    private static MemorySegment checked(String name, MemorySegment memory, int elements) {
        if (memory.byteSize() < 4L * elements || memory.address() % 64 != 0) {
            throw new IllegalArgumentException(
                    "update: " + name + " expected " + elements + " floats at a multiple of 64 bytes, got " + memory);
        }
        return memory;
    }

    private MemorySegment scalar(String name) {
        MemorySegment memory = scalars.get(name);
        if (memory == null) {
            throw new IllegalStateException("update: no scalar " + name + ", there are " + scalars.keySet());
        }
        return memory;
    }

    @Override
    public void close() {
        executors.values().forEach(Executor::close);
        arena.close();
        none.close();
    }
}
