package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Program;
import ingot.nn.Parameter;
import ingot.runtime.StageUpdates;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/// The optimizer step, applied stage by stage when the weights pass by in the next step's forward.
///
/// So the exact global norm of the gradients is known before any weight changes, without a second pass over the store.
final class DeferredUpdates implements StageUpdates, AutoCloseable {
    /// Elements that are worked on at a time: all of most tensors.
    private static final int CHUNK = 1 << 30;

    private final Optimizer optimizer;
    private final Map<String, Parameter> parameters = new LinkedHashMap<>();
    private final WeightStore store;
    private final UpdateRule rule;
    private final GradientNorm norm;
    private final Set<String> pending = new HashSet<>();

    DeferredUpdates(Optimizer optimizer, List<Parameter> parameters, Backend backend, WeightStore store) {
        this.optimizer = optimizer;
        this.store = store;
        parameters.forEach(parameter -> this.parameters.put(parameter.name(), parameter));
        rule = new UpdateRule(optimizer, parameters, CHUNK, backend);
        norm = new GradientNorm(parameters, CHUNK, backend);
    }

    /// The norm of all gradients together.
    float gradientNorm() {
        norm.reset();
        for (Parameter parameter : parameters.values()) {
            if (!parameter.learned()) {
                continue;
            }
            Key key = Key.gradient(parameter.name());
            MemorySegment gradient = store.pin(key);
            chunks(parameter)
                    .forEach((start, elements) ->
                            norm.add(parameter.name(), start, elements, part(gradient, start, elements)));
            store.release(key, false);
        }
        return norm.norm();
    }

    /// Makes the gradients in the store the pending update number `step`; each is multiplied by `scale` first.
    void pend(long step, double learningRate, float scale) {
        if (!pending.isEmpty()) {
            throw new IllegalStateException("step " + step + ": no stage has applied the update of " + pending);
        }
        rule.scalars(step, learningRate, scale);
        pending.addAll(parameters.keySet());
    }

    @Override
    public void update(Program.Stage stage) {
        stage.weights().forEach(this::update);
    }

    /// Applies what is pending: before weights are evaluated, saved or exported.
    void flush() {
        parameters.keySet().forEach(this::update);
    }

    /// Bytes of off-heap memory beside the store.
    long allocatedBytes() {
        return rule.allocatedBytes() + norm.allocatedBytes();
    }

    private void update(String name) {
        if (!pending.remove(name)) {
            return;
        }
        Parameter parameter = Objects.requireNonNull(parameters.get(name), name);
        List<Key> moments = optimizer.moments().stream()
                .map(moment -> new Key(name, moment))
                .toList();
        MemorySegment weight = store.pin(Key.weight(name));
        List<MemorySegment> state = moments.stream().map(store::pin).toList();
        MemorySegment gradient = store.pin(Key.gradient(name));
        chunks(parameter)
                .forEach((start, elements) -> rule.apply(
                        elements,
                        parameter.rule(),
                        part(weight, start, elements),
                        state.stream()
                                .map(moment -> part(moment, start, elements))
                                .toList(),
                        part(gradient, start, elements)));
        store.release(Key.gradient(name), false);
        store.release(Key.weight(name), true);
        moments.forEach(key -> store.release(key, true));
    }

    private static Chunks chunks(Parameter parameter) {
        return new Chunks(parameter.type().shape().elements(), CHUNK);
    }

    private static MemorySegment part(MemorySegment tensor, long start, int elements) {
        return tensor.asSlice(4 * start, 4L * elements);
    }

    @Override
    public void close() {
        rule.close();
        norm.close();
    }
}
