package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Program;
import ingot.nn.Parameter;
import ingot.runtime.Residency;
import ingot.runtime.SpillFile;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import org.jspecify.annotations.Nullable;

/// Training state that is in memory as a whole. The caller owns the store.
record InMemoryState(RamStore ram, DeferredUpdates deferred) implements TrainingState {

    /// Creates the arrays of the parameters in a store and fills the weights with their first values.
    static InMemoryState of(Task task, Recipe recipe, Backend backend, RamStore store) {
        Optimizer optimizer = recipe.optimizer();
        try (InitialValues initial = InitialValues.of(task, recipe, backend)) {
            for (Parameter parameter : task.parameters()) {
                String name = parameter.name();
                store.create(Key.weight(name), parameter.type());
                if (!task.start().frozen().contains(name)) {
                    store.create(Key.gradient(name), parameter.type());
                    optimizer.moments().forEach(moment -> store.create(new Key(name, moment), parameter.type()));
                }
                initial.fill(name, 0, store.pin(Key.weight(name)));
                store.release(Key.weight(name), true);
            }
        }
        return new InMemoryState(store, new DeferredUpdates(optimizer, task.trained(), backend, store));
    }

    @Override
    public Residency residency() {
        return Residency.pinned(ram);
    }

    @Override
    public Residency idle(Program other) {
        return residency();
    }

    @Override
    public SpillFile spill() {
        return SpillFile.NONE;
    }

    @Override
    public StageUpdates updates() {
        return deferred;
    }

    @Override
    public float gradientNorm() {
        return deferred.gradientNorm();
    }

    @Override
    public void pend(long step, double learningRate, float scale, String losses) {
        deferred.pend(step, learningRate, scale);
    }

    @Override
    public void flush() {
        deferred.flush();
    }

    @Override
    public WeightStore store() {
        return ram;
    }

    @Override
    public @Nullable StreamPlan plan() {
        return null;
    }

    @Override
    public StreamReport report() {
        return StreamReport.NONE;
    }

    @Override
    public long bytes() {
        return deferred.allocatedBytes() + ram.residentBytes();
    }

    @Override
    public void close() {
        deferred.close();
    }
}
