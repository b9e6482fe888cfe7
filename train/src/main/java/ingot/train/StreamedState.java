package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Program;
import ingot.ir.IngotException;
import ingot.nn.Parameter;
import ingot.runtime.Residency;
import ingot.runtime.SpillFile;
import ingot.runtime.StageUpdates;
import ingot.runtime.StateUpdates;
import ingot.runtime.Streaming;
import ingot.runtime.Visit;
import ingot.runtime.WindowPlan;
import ingot.store.DiskStore;
import ingot.store.HugePages;
import ingot.store.StoreLayout;
import ingot.store.WeightStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Training state that is on disk and passes through a window of memory. The store is the checkpoint: every step
/// commits.
final class StreamedState implements TrainingState {
    private static final JsonMapper JSON = JsonMapper.builder().build();

    private final StreamPlan plan;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment window;
    private final MemorySegment ring;
    private final DiskStore store;
    private final InitialValues initial;
    private final Updates updates;
    private final Streaming streaming;
    private final SpillFile spill;
    private Note note;
    private long commitNanos;

    /// What a commit says about the steps before it.
    ///
    /// @param steps committed steps
    /// @param learningRate and `scale`: of the pending update, number `steps` − 1
    /// @param losses digest of the losses so far
    record Note(long steps, double learningRate, float scale, String losses) {
        String json() {
            return JSON.writeValueAsString(JSON.createObjectNode()
                    .put("steps", steps)
                    .put("learning-rate", learningRate)
                    .put("scale", (double) scale)
                    .put("losses", losses));
        }

        static Note of(String json) {
            try {
                JsonNode node = JSON.readTree(json);
                return new Note(
                        node.required("steps").asLong(),
                        node.required("learning-rate").asDouble(),
                        (float) node.required("scale").asDouble(),
                        node.required("losses").asString());
            } catch (JacksonException e) {
                throw new IngotException("store: its note is no state of a training run: " + json, e);
            }
        }
    }

    /// The optimizer and the gradient norm, chunk by chunk.
    private record Updates(Map<String, Parameter> parameters, UpdateRule rule, GradientNorm norm, int chunk)
            implements StateUpdates {
        @Override
        public void begin() {
            norm.reset();
        }

        @Override
        public void apply(
                String tensor,
                long start,
                int elements,
                MemorySegment weight,
                List<MemorySegment> moments,
                MemorySegment gradient) {
            Parameter parameter = Objects.requireNonNull(parameters.get(tensor), tensor);
            rule.apply(elements, parameter.rule(), weight, moments, gradient);
        }

        @Override
        public void complete(String tensor, long start, MemorySegment gradient) {
            if (!Objects.requireNonNull(parameters.get(tensor), tensor).learned()) {
                return;
            }
            new Chunks(gradient.byteSize() / Float.BYTES, chunk)
                    .forEach((at, elements) -> norm.add(
                            tensor,
                            start + at,
                            elements,
                            gradient.asSlice(Float.BYTES * at, (long) Float.BYTES * elements)));
        }
    }

    private StreamedState(
            StreamPlan plan, Task task, Recipe recipe, Backend backend, Backend background, Streamed settings) {
        this.plan = plan;
        StoreLayout layout = plan.layout();
        List<Parameter> parameters = task.trained();
        initial = InitialValues.of(task, recipe, background.background());
        Map<String, Parameter> byName = new LinkedHashMap<>();
        parameters.forEach(parameter -> byName.put(parameter.name(), parameter));
        updates = new Updates(
                byName,
                new UpdateRule(
                        recipe.optimizer(), parameters, Math.min(Streaming.PIECE, layout.chunkElements()), background),
                new GradientNorm(parameters, layout.chunkElements(), backend),
                layout.chunkElements());
        DiskStore opened = null;
        SpillFile made = SpillFile.NONE;
        try {
            window = HugePages.allocate(arena, plan.window().bytes());
            ring = HugePages.allocate(arena, plan.ringBytes());
            opened = store(layout, window, settings);
            long spilled = plan.program().memory().spillBytes();
            if (spilled > 0) {
                made = SpillFile.create(settings.folder().resolve(Streamed.ACTIVATIONS), spilled);
            }
            note = Note.of(opened.note());
            streaming = new Streaming(plan.program(), plan.window(), opened, window, ring, updates);
        } catch (RuntimeException | OutOfMemoryError e) {
            made.close();
            if (opened != null) {
                opened.close();
            }
            closeMemory();
            if (e instanceof OutOfMemoryError) {
                throw new IngotException(
                        "memory: the machine does not have the "
                                + (plan.window().bytes() + plan.ringBytes() >> 20)
                                + " MiB that the budget plans; give a smaller one with --memory",
                        e);
            }
            throw e;
        }
        store = opened;
        spill = made;
        continueFrom(note);
    }

    /// Opens the store of a folder, or creates it with nothing in it: what was never updated takes no time.
    static StreamedState open(
            StreamPlan plan, Task task, Recipe recipe, Backend backend, Backend background, Streamed settings) {
        return new StreamedState(plan, task, recipe, backend, background, settings);
    }

    private DiskStore store(StoreLayout layout, MemorySegment window, Streamed settings) {
        DiskStore.Options options = DiskStore.Options.of(initial, settings.warn())
                .withWindow(window)
                .withStorage(settings.storage())
                .withDurability(settings.durable());
        return Streamed.exists(settings.folder())
                ? DiskStore.open(settings.folder(), layout, settings.identity(), options)
                : DiskStore.create(
                        settings.folder(),
                        layout,
                        settings.identity(),
                        new Note(0, 0, 1, Digest.EMPTY).json(),
                        options);
    }

    /// The next step to be done.
    long step() {
        return note.steps();
    }

    String losses() {
        return note.losses();
    }

    @Override
    public StreamPlan plan() {
        return plan;
    }

    @Override
    public StreamReport report() {
        DiskStore.Statistics disk = store.statistics();
        return new StreamReport(
                disk.bytesRead() + spill.bytesRead(),
                disk.bytesWritten() + spill.bytesWritten(),
                (streaming.readStall() + spill.readStall()) / 1e9,
                (streaming.writeStall() + spill.writeStall()) / 1e9,
                commitNanos / 1e9);
    }

    private void continueFrom(Note newest) {
        note = newest;
        streaming.committed(note.steps());
        updates.rule().scalars(note.steps() - 1, note.learningRate(), note.scale());
    }

    @Override
    public Residency residency() {
        return streaming;
    }

    @Override
    public Residency idle(Program other) {
        WindowPlan passing = WindowPlan.of(Visit.of(other), List.of(), window.byteSize());
        Streaming reading = new Streaming(other, passing, store, window, ring, StateUpdates.NONE);
        reading.committed(note.steps());
        return reading;
    }

    @Override
    public SpillFile spill() {
        return spill;
    }

    @Override
    public StageUpdates updates() {
        return StageUpdates.NONE;
    }

    @Override
    public float gradientNorm() {
        return updates.norm().norm();
    }

    @Override
    public void pend(long step, double learningRate, float scale, String losses) {
        Note next = new Note(step + 1, learningRate, scale, losses);
        long start = System.nanoTime();
        store.commit(next.json());
        commitNanos += System.nanoTime() - start;
        continueFrom(next);
    }

    @Override
    public void flush() {
        streaming.flush();
        store.commit(note.json());
        streaming.park();
    }

    @Override
    public WeightStore store() {
        return store;
    }

    @Override
    public long bytes() {
        return plan.window().bytes() + plan.ringBytes();
    }

    @Override
    public void close() {
        streaming.close();
        store.close();
        spill.close();
        closeMemory();
    }

    private void closeMemory() {
        updates.rule().close();
        updates.norm().close();
        initial.close();
        arena.close();
    }
}
