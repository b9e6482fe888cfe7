package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Buffer;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The optimizer step, applied stage by stage when the weights pass by in the next step's forward.
///
/// So the exact global norm of the gradients is known before any weight changes, without a second pass over the store.
final class DeferredUpdates implements StageUpdates, AutoCloseable {
    private static final String SCALE = "scale";

    private final Optimizer optimizer;
    private final Map<String, Parameter> parameters = new LinkedHashMap<>();
    private final WeightStore store;
    private final RamStore none = new RamStore();
    private final Map<Rule, Executor> rules = new HashMap<>();
    private final Map<Integer, Executor> squares = new HashMap<>();
    private final Set<String> pending = new HashSet<>();

    /// Weights of equal size and decay share their code.
    private record Rule(int elements, boolean decay) {}

    DeferredUpdates(Optimizer optimizer, List<Parameter> parameters, Backend backend, WeightStore store) {
        this.optimizer = optimizer;
        this.store = store;
        Set<String> bound = new HashSet<>(Set.of("weight", "gradient"));
        bound.addAll(optimizer.moments());
        Map<String, String> inPlace = new HashMap<>(Map.of("weight", "weight"));
        optimizer.moments().forEach(moment -> inPlace.put(moment, moment));
        for (Parameter parameter : parameters) {
            this.parameters.put(parameter.name(), parameter);
            rules.computeIfAbsent(rule(parameter), rule -> {
                Program program = Compiler.update(optimizer.update(rule.elements(), rule.decay()), inPlace);
                return new Executor(program, backend, none, bound);
            });
            squares.computeIfAbsent(rule(parameter).elements(), elements -> {
                Program program = Compiler.inference(Optimizer.sumOfSquares(elements));
                return new Executor(program, backend, none, bound);
            });
        }
    }

    /// The root of the sum of the squares of all gradients: per weight by blocks, over the weights one chain in
    /// declared order.
    float gradientNorm() {
        float sum = 0;
        for (Parameter parameter : parameters.values()) {
            Executor executor = find(squares, rule(parameter).elements());
            Key key = Key.gradient(parameter.name());
            executor.bind(new Buffer.Input("gradient"), store.pin(key));
            executor.run(StageUpdates.NONE);
            store.release(key, false);
            sum += executor.output("squares").get(ValueLayout.JAVA_FLOAT, 0);
        }
        return (float) Math.sqrt(sum);
    }

    /// Makes the gradients in the store the pending update number `step`; each is multiplied by `scale` first.
    void pend(long step, double learningRate, float scale) {
        Map<String, Float> scalars = new HashMap<>(optimizer.scalars(step, learningRate));
        scalars.put(SCALE, scale);
        for (Executor executor : rules.values()) {
            scalars.forEach((name, value) -> executor.input(name).set(ValueLayout.JAVA_FLOAT, 0, value));
        }
        if (!pending.isEmpty()) {
            throw new IllegalStateException("step " + step + ": no stage has applied the update of " + pending);
        }
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
        return rules.values().stream().mapToLong(Executor::allocatedBytes).sum()
                + squares.values().stream().mapToLong(Executor::allocatedBytes).sum();
    }

    private void update(String name) {
        if (!pending.remove(name)) {
            return;
        }
        Executor executor = find(rules, rule(find(parameters, name)));
        List<Key> changed = new ArrayList<>(List.of(Key.weight(name)));
        optimizer.moments().forEach(moment -> changed.add(new Key(name, moment)));
        for (Key key : changed) {
            MemorySegment memory = store.pin(key);
            executor.bind(new Buffer.Input(key.part()), memory);
            executor.bind(new Buffer.Output(key.part()), memory);
        }
        Key gradient = Key.gradient(name);
        executor.bind(new Buffer.Input("gradient"), store.pin(gradient));
        executor.run(StageUpdates.NONE);
        store.release(gradient, false);
        changed.forEach(key -> store.release(key, true));
    }

    private static Rule rule(Parameter parameter) {
        return new Rule(Math.toIntExact(parameter.type().shape().elements()), parameter.decay());
    }

    private static <K, V> V find(Map<K, V> map, K key) {
        V value = map.get(key);
        if (value == null) {
            throw new IllegalStateException("no entry for " + key);
        }
        return value;
    }

    @Override
    public void close() {
        rules.values().forEach(Executor::close);
        squares.values().forEach(Executor::close);
        none.close();
    }
}
