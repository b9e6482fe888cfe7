package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.compiler.TrainingSpec;
import ingot.ir.IngotException;
import ingot.runtime.Executor;
import ingot.runtime.Profile;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The training loop: one compiled program, one store, one step at a time.
///
/// A step is: apply what the step before left pending while the forward loads its stages, compute the loss and all
/// gradients, take their global norm, and leave them pending. Everything is a function of (configuration, step): there
/// is no other state than the store, which is in memory as a whole, or on disk.
public final class Trainer implements AutoCloseable {
    private final Task task;
    private final Recipe recipe;
    private final TrainingState state;
    private final Executor executor;
    private String losses = Digest.EMPTY;
    private long step;

    /// What a step did.
    public record StepResult(long step, float loss, float norm, double learningRate, long tokens) {}

    /// Prepares the first step; the store is filled with the first values of the parameters.
    public Trainer(Task task, Recipe recipe, Backend backend, RamStore store) {
        this(task, recipe, backend, Compiler.training(spec(task, recipe)), store);
    }

    /// The same with its program compiled already.
    Trainer(Task task, Recipe recipe, Backend backend, Program program, RamStore store) {
        this(task, recipe, backend, program, InMemoryState.of(task, recipe, backend, store));
    }

    private Trainer(Task task, Recipe recipe, Backend backend, Program program, TrainingState state) {
        this.task = task;
        this.recipe = recipe;
        this.state = state;
        executor = new Executor(program, backend, state.residency(), state.spill());
    }

    /// A trainer whose state is on disk; continues after the last committed step.
    ///
    /// @param background runs updates while `backend` computes: a backend of its own, with one thread
    public static Trainer streamed(Task task, Recipe recipe, Backend backend, Backend background, Streamed settings) {
        return streamed(Streamed.plan(task, recipe, backend, settings), task, recipe, backend, background, settings);
    }

    /// The same with its plan made already.
    static Trainer streamed(
            StreamPlan plan, Task task, Recipe recipe, Backend backend, Backend background, Streamed settings) {
        StreamedState state = StreamedState.open(plan, task, recipe, backend, background, settings);
        try {
            Trainer trainer = new Trainer(task, recipe, backend, plan.program(), state);
            trainer.step = state.step();
            trainer.losses = state.losses();
            return trainer;
        } catch (RuntimeException e) {
            state.close();
            throw e;
        }
    }

    /// What the compiler is asked for.
    public static TrainingSpec spec(Task task, Recipe recipe) {
        return new TrainingSpec(
                task.lossGraph(),
                "loss",
                recipe.batch(),
                recipe.rows(),
                recipe.shard(),
                task.batched(),
                task.keyed() ? Set.of("key") : Set.of(),
                recipe.recompute(),
                task.start().frozen());
    }

    public Program program() {
        return executor.program();
    }

    /// The arrays, for reading between two steps; nothing is pending after `flush`.
    public WeightStore store() {
        return state.store();
    }

    /// The next step to be done; steps count from 0.
    public long step() {
        return step;
    }

    /// Running digest of the losses so far.
    public String losses() {
        return losses;
    }

    /// Continues at `next`: the store holds the state after the steps before it.
    void continueAt(long next, String before) {
        step = next;
        losses = before;
    }

    /// An executor of another program over this trainer's weights, in its memory, while nothing is pending.
    Executor idle(Program other, Backend backend) {
        return new Executor(other, backend, state.idle(other), executor);
    }

    /// What programs over this trainer's weights are to be compiled with.
    Compiler.Options options() {
        StreamPlan plan = state.plan();
        return plan == null ? Compiler.Options.DEFAULT : plan.options();
    }

    /// Rows computed at a time.
    int rows() {
        return recipe.rows();
    }

    /// What streaming has done; nothing, if all state is in memory.
    public StreamReport streamReport() {
        return state.report();
    }

    /// How the state goes through memory; null if all of it is there.
    public @Nullable StreamPlan streamPlan() {
        return state.plan();
    }

    /// Does one step.
    public StepResult next() {
        long tokens = task.feed().fill(step, executor);
        if (task.keyed()) {
            fillKeys();
        }
        executor.run(state.updates());
        float loss = executor.output("loss").get(ValueLayout.JAVA_FLOAT, 0);
        float norm = Float.isFinite(loss) ? state.gradientNorm() : Float.NaN;
        if (!Float.isFinite(loss) || !Float.isFinite(norm)) {
            throw notFinite(loss, norm);
        }
        double rate = recipe.schedule().at(step);
        losses = Digest.append(losses, loss);
        state.pend(step, rate, scale(norm), losses);
        StepResult result = new StepResult(step, loss, norm, rate, tokens);
        step++;
        return result;
    }

    /// Applies what is pending, so that the store holds the state after the last step.
    public void flush() {
        state.flush();
    }

    /// Bytes of off-heap memory in use, the store included.
    public long memoryBytes() {
        return executor.allocatedBytes() + state.bytes();
    }

    /// Starts or stops measuring every kernel of the step.
    public void profile(@Nullable Profile into) {
        executor.profile(into);
    }

    /// min(1, clip / (norm + 10⁻⁶)), as in PyTorch.
    private float scale(float norm) {
        return recipe.clip() == 0 ? 1 : Math.min(1, (float) recipe.clip() / (norm + 1e-6f));
    }

    /// One key per micro-batch: (seed, step, first row).
    private void fillKeys() {
        MemorySegment keys = executor.input("key");
        int size = recipe.rows();
        for (int i = 0; i * (long) size < recipe.batch(); i++) {
            keys.setAtIndex(ValueLayout.JAVA_INT, 4L * i, (int) recipe.seed());
            keys.setAtIndex(ValueLayout.JAVA_INT, 4L * i + 1, (int) (recipe.seed() >>> 32));
            keys.setAtIndex(ValueLayout.JAVA_INT, 4L * i + 2, (int) step);
            keys.setAtIndex(ValueLayout.JAVA_INT, 4L * i + 3, i * size);
        }
    }

    private IngotException notFinite(float loss, float norm) {
        String first = executor.firstNonFinite();
        String what = Float.isFinite(loss) ? "the gradient norm is " + norm : "the loss is " + loss;
        return new IngotException("step " + step + ": " + what
                + (first == null ? "" : "; the first value that is not finite: " + first)
                + ". Nothing was changed by this step; the last checkpoint stands. Try a lower train.learning-rate, a"
                + " longer train.warmup or a smaller train.clip");
    }

    @Override
    public void close() {
        state.close();
        executor.close();
    }
}
