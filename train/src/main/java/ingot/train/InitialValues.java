package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.ir.Graph;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.nn.Initializer;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.BaseWeights;
import ingot.store.Initial;
import ingot.store.RamStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// The first values of parameters by a backend: the bits of `Initializer.fill`, some ten times as fast. Several callers
/// take turns, piece by piece. What a base has is read from there.
final class InitialValues implements Initial, AutoCloseable {
    /// Values per run of a program: they stay in a second-level cache.
    private static final int PIECE = 1 << 16;

    /// Fewer are made one by one: small models compile nothing.
    private static final int FEW = 1 << 12;

    private final Map<String, Initializer> initializers = new LinkedHashMap<>();
    private final long seed;
    private final Backend backend;
    private final @Nullable BaseWeights base;
    private final RamStore none = new RamStore();
    private final Map<Class<? extends Initializer>, Executor> executors = new HashMap<>();

    InitialValues(List<Parameter> parameters, long seed, Backend backend, @Nullable BaseWeights base) {
        this.seed = seed;
        this.backend = backend;
        this.base = base;
        parameters.forEach(parameter -> initializers.put(parameter.name(), parameter.initializer()));
    }

    static InitialValues of(Task task, Recipe recipe, Backend backend) {
        return new InitialValues(
                task.parameters(), recipe.seed(), backend, task.start().base());
    }

    @Override
    public String source(String parameter) {
        return base == null || !base.contains(parameter)
                ? ""
                : base.file(parameter).toString();
    }

    /// Writes the values at positions `start`, `start` + 1, … of a parameter, until `into` is full.
    @Override
    public void fill(String parameter, long start, MemorySegment into) {
        Initializer initializer = initializers.get(parameter);
        if (base != null && base.contains(parameter)) {
            base.read(parameter, start, into);
            return;
        }
        switch (initializer) {
            case null ->
                throw new IllegalArgumentException(
                        "initial values: no parameter " + parameter + ", there are " + initializers.keySet());
            case Initializer.Normal normal ->
                random(parameter, normal, Initializer.Normal::graph, normal.deviation(), start, into);
            case Initializer.Uniform uniform ->
                random(parameter, uniform, Initializer.Uniform::graph, uniform.bound(), start, into);
            case Initializer.Constant constant -> repeat((float) constant.value(), into);
        }
    }

    private void random(
            String parameter,
            Initializer initializer,
            IntFunction<Graph> graph,
            double scale,
            long start,
            MemorySegment into) {
        long elements = into.byteSize() / 4;
        long done = 0;
        while (done < elements) {
            long position = start + done;
            // the positions of a run have the high half in common
            long same = (1L << 32) - (position & 0xFFFF_FFFFL);
            int count = (int) Math.min(Math.min(PIECE, same), elements - done);
            MemorySegment piece = into.asSlice(4 * done, 4L * count);
            if (count < FEW) {
                initializer.fill(Tensor.over(Type.f32(count), piece), seed, parameter, position);
            } else {
                synchronized (executors) {
                    Executor executor = executors.computeIfAbsent(initializer.getClass(), _ -> compile(graph));
                    executor.input("key").copyFrom(MemorySegment.ofArray(Initializer.key(seed, parameter)));
                    executor.input("first").set(ValueLayout.JAVA_INT, 0, (int) position);
                    executor.input("row").set(ValueLayout.JAVA_INT, 0, 2 * (int) (position >>> 32));
                    executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, (float) scale);
                    executor.run(StageUpdates.NONE);
                    MemorySegment.copy(executor.output("values"), 0, piece, 0, piece.byteSize());
                }
            }
            done += count;
        }
    }

    private Executor compile(IntFunction<Graph> graph) {
        return new Executor(Compiler.inference(graph.apply(PIECE)), backend, none);
    }

    private static void repeat(float value, MemorySegment into) {
        long bytes = into.byteSize();
        if (Float.floatToRawIntBits(value) == 0) {
            into.fill((byte) 0);
            return;
        }
        long done = Math.min(bytes, 4L * FEW);
        for (long at = 0; at < done; at += 4) {
            into.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, value);
        }
        while (done < bytes) {
            long more = Math.min(4L * PIECE, Math.min(done, bytes - done));
            MemorySegment.copy(into, 0, into, done, more);
            done += more;
        }
    }

    @Override
    public void close() {
        executors.values().forEach(Executor::close);
        none.close();
    }
}
