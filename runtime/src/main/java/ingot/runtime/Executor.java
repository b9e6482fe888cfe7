package ingot.runtime;

import ingot.compiler.Backend;
import ingot.compiler.Buffer;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.compiler.Program;
import ingot.compiler.Step;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.store.HugePages;
import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Walks a program: a loop over its steps, over memory planned before the first of them.
///
/// All memory is allocated on construction; a run allocates nothing. One executor serves one caller at a time; the
/// kernels use all threads of their backend. Weights and gradients are in memory between the `Load` and the `Free` of
/// their stage; a `Residency` brings them there, and ends with the executor.
public final class Executor implements AutoCloseable {
    private final Program program;
    private final Backend backend;
    private final Residency residency;
    private final SpillFile spill;
    private final @Nullable PackedWeights packedWeights;
    private final List<Visit> visits;
    private final Arena arena = Arena.ofShared();
    private final Map<String, MemorySegment> inputs = new LinkedHashMap<>();
    private final Map<String, MemorySegment> outputs = new LinkedHashMap<>();
    private final Map<Buffer, Integer> slots = new HashMap<>();
    private final Map<PackedWeights.Key, Integer> packedSlots = new HashMap<>();
    private final List<Action> actions = new ArrayList<>();
    private final long[] base;
    private final MemorySegment activations;
    private final long scratch;
    private final long allocatedBytes;
    private @Nullable Profile profile;
    private BooleanSupplier cancelled = () -> false;

    /// What a step became: everything looked up once.
    private sealed interface Action {
        record Load(Visit visit, int[] slots, long[] addresses) implements Action {}

        record Update(Program.Stage stage) implements Action {}

        /// `to` is the slot for the address of the packed weight.
        record Pack(PackedWeights weights, PackedWeights.Key key, Backend.Packed packed, int slot, int to)
                implements Action {}

        record Run(Kernel kernel, Backend.Executable code, int[] slots, long[] offsets, long[] addresses)
                implements Action {}

        record Store(Visit visit) implements Action {}

        record Free(Visit visit) implements Action {}

        record Spill(int slot, long bytes, long position) implements Action {}

        record Fetch(int slot, long bytes, long position) implements Action {}

        record Await(long position) implements Action {}
    }

    public Executor(Program program, Backend backend, WeightStore store) {
        this(program, backend, store, Set.of());
    }

    /// An executor that owns no memory for the inputs and outputs named in `bound`: the caller binds them before every
    /// run.
    public Executor(Program program, Backend backend, WeightStore store, Set<String> bound) {
        this(program, backend, Residency.pinned(store), bound, MemorySegment.NULL, SpillFile.NONE, null);
    }

    /// An executor for weights that never change: it reads them packed, where that is faster.
    public Executor(Program program, Backend backend, WeightStore store, PackedWeights packed) {
        this(program, backend, Residency.pinned(store), Set.of(), MemorySegment.NULL, SpillFile.NONE, packed);
    }

    /// @param spill where activations go that the program spills
    public Executor(Program program, Backend backend, Residency residency, SpillFile spill) {
        this(program, backend, residency, Set.of(), MemorySegment.NULL, spill, null);
    }

    /// An executor that works in the memory of another one, which is idle meanwhile; if it is too small, in its own.
    public Executor(Program program, Backend backend, Residency residency, Executor idle) {
        this(program, backend, residency, Set.of(), idle.activations, SpillFile.NONE, null);
    }

    private Executor(
            Program program,
            Backend backend,
            Residency residency,
            Set<String> bound,
            MemorySegment idle,
            SpillFile spill,
            @Nullable PackedWeights packedWeights) {
        this.program = program;
        this.backend = backend;
        this.packedWeights = packedWeights;
        this.spill = spill;
        this.residency = residency;
        visits = Visit.of(program);
        for (Step step : program.steps()) {
            for (Step.Operand operand : operands(step)) {
                slots.putIfAbsent(operand.buffer(), slots.size());
            }
        }
        base = new long[slots.size() + (packedWeights == null ? 0 : packable(program))];
        long bytes = 0;
        try {
            bytes += allocate(program.inputs(), bound, inputs);
            bytes += allocate(program.outputs(), bound, outputs);
            long needed = Math.max(64, program.memory().activationBytes());
            if (idle.byteSize() >= needed) {
                activations = idle;
            } else {
                activations = HugePages.allocate(arena, needed);
                bytes += program.memory().activationBytes();
            }
            for (Map.Entry<Buffer, Integer> slot : slots.entrySet()) {
                base[slot.getValue()] = switch (slot.getKey()) {
                    case Buffer.Input input ->
                        bound.contains(input.name())
                                ? 0
                                : find(inputs, input.name()).address();
                    case Buffer.Output output ->
                        bound.contains(output.name())
                                ? 0
                                : find(outputs, output.name()).address();
                    case Buffer.Activation activation -> activations.address() + activation.offset();
                    case Buffer.Constant constant -> copy(program.constants().get(constant.index()));
                    case Buffer.Weight _, Buffer.Gradient _ -> 0;
                };
            }
            bytes += program.memory().constantBytes();
            long scratchBytes = resolve();
            scratch = HugePages.allocate(arena, Math.max(64, scratchBytes)).address();
            bytes += scratchBytes;
        } catch (OutOfMemoryError e) {
            arena.close();
            throw new IngotException(
                    "executor: no memory for " + program.name() + ", it plans "
                            + program.memory().total() + " bytes; use a smaller micro-batch or a smaller model",
                    e);
        }
        allocatedBytes = bytes;
    }

    /// Bytes of off-heap memory that an executor of `program` will hold, without the store.
    public static long bytes(Program program, Backend backend) {
        long scratch = 0;
        for (Step step : program.steps()) {
            switch (step) {
                case Step.Run run ->
                    scratch = Math.max(scratch, backend.prepare(run.kernel()).scratchBytes());
                case Step.Reduce reduce ->
                    scratch = Math.max(
                            scratch,
                            backend.prepare(addition(reduce.elements())).scratchBytes());
                case Step.Load _,
                        Step.Update _,
                        Step.Store _,
                        Step.Free _,
                        Step.Commit _,
                        Step.Spill _,
                        Step.Fetch _,
                        Step.Await _ -> {}
            }
        }
        Program.MemoryPlan memory = program.memory();
        return memory.activationBytes() + memory.constantBytes() + memory.interfaceBytes() + scratch;
    }

    public Program program() {
        return program;
    }

    /// Memory of an input, to be filled before a run.
    public MemorySegment input(String name) {
        return find(inputs, name);
    }

    /// Memory of an output, valid after a run.
    public MemorySegment output(String name) {
        return find(outputs, name);
    }

    public Tensor outputTensor(String name) {
        Type type = program.outputs().get(name);
        if (type == null) {
            throw new IngotException(program.name() + ": no output " + name + ", it has "
                    + program.outputs().keySet());
        }
        return Tensor.over(type, output(name));
    }

    /// Binds an input or output to memory of the caller instead, 64-byte aligned; it must stay valid.
    public void bind(Buffer buffer, MemorySegment memory) {
        Integer slot = slots.get(buffer);
        if (slot != null) {
            base[slot] = memory.address();
        }
    }

    /// Bytes of off-heap memory this executor holds, without the store.
    public long allocatedBytes() {
        return allocatedBytes;
    }

    /// Starts or stops measuring every kernel.
    public void profile(@Nullable Profile into) {
        profile = into;
    }

    /// Makes runs stop between two kernels with a `CancelledException` when `condition` holds.
    public void cancelWhen(BooleanSupplier condition) {
        cancelled = condition;
    }

    public void run(StageUpdates updates) {
        walk(updates, false);
    }

    /// Runs again and looks at every kernel's results: where the first value that is not finite appears, or null.
    ///
    /// Weights are looked at when they are loaded. Updates are not applied.
    public @Nullable String firstNonFinite() {
        return walk(StageUpdates.NONE, true);
    }

    /// Whatever ends a walk early, an exception or a finding, nothing of it is kept.
    private @Nullable String walk(StageUpdates updates, boolean check) {
        boolean complete = false;
        residency.begin();
        try (Backend.Session _ = backend.session()) {
            String found = steps(updates, check);
            complete = found == null;
            return found;
        } finally {
            if (!complete) {
                spill.drop();
                residency.abandon();
            }
        }
    }

    private @Nullable String steps(StageUpdates updates, boolean check) {
        String stage = program.name();
        int kernels = 0;
        for (Action action : actions) {
            switch (action) {
                case Action.Load load -> {
                    stage = load.visit().stage().name();
                    residency.load(load.visit(), load.addresses());
                    for (int i = 0; i < load.addresses().length; i++) {
                        if (load.slots()[i] >= 0) {
                            base[load.slots()[i]] = load.addresses()[i];
                        }
                    }
                    String found = check ? nonFinite(load) : null;
                    if (found != null) {
                        return found;
                    }
                }
                case Action.Update update -> updates.update(update.stage());
                case Action.Pack pack -> pack(pack);
                case Action.Run run -> {
                    execute(run);
                    kernels++;
                    if (check) {
                        String found = nonFinite(run);
                        if (found != null) {
                            return "kernel " + kernels + " (" + run.kernel().kind() + ") of " + stage + ", " + found;
                        }
                    }
                }
                case Action.Store store -> residency.stored(store.visit());
                case Action.Free free -> residency.free(free.visit());
                case Action.Spill out -> spill.write(out.position(), memory(out.slot(), out.bytes()));
                case Action.Fetch in -> spill.read(in.position(), memory(in.slot(), in.bytes()));
                case Action.Await await -> spill.await(await.position());
            }
        }
        return null;
    }

    private MemorySegment memory(int slot, long bytes) {
        return MemorySegment.ofAddress(base[slot]).reinterpret(bytes);
    }

    private void pack(Action.Pack pack) {
        if (base[pack.to()] == 0) {
            base[pack.to()] = pack.weights()
                    .address(
                            pack.key(),
                            pack.packed(),
                            base[pack.slot()] + pack.key().byteOffset());
        }
    }

    private void execute(Action.Run run) {
        if (cancelled.getAsBoolean()) {
            throw new CancelledException();
        }
        long[] addresses = run.addresses();
        for (int i = 0; i < addresses.length; i++) {
            addresses[i] = base[run.slots()[i]] + run.offsets()[i];
        }
        Profile into = profile;
        if (into == null) {
            run.code().run(addresses, scratch);
        } else {
            long start = System.nanoTime();
            run.code().run(addresses, scratch);
            into.add(run.kernel(), start, System.nanoTime());
        }
    }

    /// Prepares every step; returns the scratch bytes the hungriest kernel needs.
    private long resolve() {
        long scratchBytes = 0;
        List<Step> steps = program.steps();
        int visit = -1;
        for (Step step : steps) {
            switch (step) {
                case Step.Load _ -> {
                    List<Visit.Touch> touches = visits.get(++visit).touches();
                    int[] touched = touches.stream()
                            .mapToInt(touch -> slots.getOrDefault(buffer(touch.key()), -1))
                            .toArray();
                    actions.add(new Action.Load(visits.get(visit), touched, new long[touched.length]));
                }
                case Step.Update update ->
                    actions.add(new Action.Update(program.stages().get(update.stage())));
                case Step.Run run -> scratchBytes = Math.max(scratchBytes, add(run.kernel(), run.operands()));
                case Step.Reduce reduce ->
                    scratchBytes = Math.max(
                            scratchBytes,
                            add(addition(reduce.elements()), List.of(reduce.left(), reduce.right(), reduce.left())));
                case Step.Store _ -> actions.add(new Action.Store(visits.get(visit)));
                case Step.Free _ -> actions.add(new Action.Free(visits.get(visit)));
                case Step.Spill out ->
                    actions.add(new Action.Spill(slot(out.from().buffer()), out.bytes(), out.position()));
                case Step.Fetch in -> actions.add(new Action.Fetch(slot(in.to().buffer()), in.bytes(), in.position()));
                case Step.Await await -> actions.add(new Action.Await(await.position()));
                case Step.Commit _ -> {
                    // the caller commits: it knows what the pending update is
                }
            }
        }
        return scratchBytes;
    }

    private long add(Kernel kernel, List<Step.Operand> operands) {
        Backend.Executable code = backend.prepare(kernel);
        int[] indices = operands.stream().mapToInt(o -> slot(o.buffer())).toArray();
        long[] offsets = operands.stream().mapToLong(Step.Operand::byteOffset).toArray();
        if (packedWeights != null && kernel instanceof Kernel.Matmul) {
            code = pack(packedWeights, code, operands, indices, offsets);
        }
        actions.add(new Action.Run(kernel, code, indices, offsets, new long[indices.length]));
        return code.scratchBytes();
    }

    /// Makes a product read its weight packed, if it has one and the backend an order for it.
    private Backend.Executable pack(
            PackedWeights weights,
            Backend.Executable code,
            List<Step.Operand> operands,
            int[] indices,
            long[] offsets) {
        for (int read = 0; read < 2; read++) {
            Backend.@Nullable Packed packed =
                    operands.get(read).buffer() instanceof Buffer.Weight ? code.packed(read) : null;
            if (packed != null && operands.get(read).buffer() instanceof Buffer.Weight weight) {
                PackedWeights.Key key = new PackedWeights.Key(weight.name(), offsets[read], packed.order());
                int to = packedSlots.computeIfAbsent(key, _ -> slots.size() + packedSlots.size());
                actions.add(new Action.Pack(weights, key, packed, indices[read], to));
                indices[read] = to;
                offsets[read] = 0;
                return packed.code();
            }
        }
        return code;
    }

    private static int packable(Program program) {
        return (int) program.steps().stream()
                .filter(step -> step instanceof Step.Run run && run.kernel() instanceof Kernel.Matmul)
                .count();
    }

    private int slot(Buffer buffer) {
        Integer slot = slots.get(buffer);
        if (slot == null) {
            throw new IllegalStateException("no slot for " + buffer);
        }
        return slot;
    }

    private static Buffer buffer(Key key) {
        return key.part().equals(Key.GRADIENT) ? new Buffer.Gradient(key.tensor()) : new Buffer.Weight(key.tensor());
    }

    private static List<Step.Operand> operands(Step step) {
        return switch (step) {
            case Step.Run run -> run.operands();
            case Step.Reduce reduce -> List.of(reduce.left(), reduce.right());
            case Step.Spill spill -> List.of(spill.from());
            case Step.Fetch fetch -> List.of(fetch.to());
            case Step.Await await -> List.of(await.memory());
            case Step.Load _, Step.Update _, Step.Store _, Step.Free _, Step.Commit _ -> List.of();
        };
    }

    private static Kernel addition(long elements) {
        // two axes, because one cannot have more than 2³¹ − 1 elements
        int width = (int) Math.min(Long.lowestOneBit(Math.max(1, elements)), 1 << 20);
        Type type = Type.f32(Math.toIntExact(elements / width), width);
        GraphBuilder builder = new GraphBuilder("add");
        builder.output("0", builder.add(builder.input("0", type), builder.input("1", type)));
        Layout layout = Layout.rowMajor(type);
        return new Kernel.Map(builder.build(), List.of(layout, layout), List.of(layout));
    }

    private @Nullable String nonFinite(Action.Load load) {
        List<Visit.Touch> touches = load.visit().touches();
        for (int i = 0; i < touches.size(); i++) {
            Key key = touches.get(i).key();
            Type type = program.weights().get(key.tensor());
            if (key.part().equals(Key.WEIGHT) && type != null) {
                String found = nonFinite(type, load.addresses()[i]);
                if (found != null) {
                    return "weight " + key.tensor() + " " + found;
                }
            }
        }
        return null;
    }

    private @Nullable String nonFinite(Action.Run run) {
        List<Layout> writes = run.kernel().writes();
        int first = run.addresses().length - writes.size();
        for (int i = 0; i < writes.size(); i++) {
            String found = nonFinite(writes.get(i), run.addresses()[first + i]);
            if (found != null) {
                return "result " + i + " " + found;
            }
        }
        return null;
    }

    private static @Nullable String nonFinite(Type type, long address) {
        return nonFinite(Layout.rowMajor(type), address);
    }

    /// Looks at the bytes a layout spans; views with gaps may show a neighbour's value, which is as telling.
    private static @Nullable String nonFinite(Layout layout, long address) {
        if (!layout.dtype().isFloating()) {
            return null;
        }
        long last = layout.offset();
        for (int axis = 0; axis < layout.shape().rank(); axis++) {
            last += Math.max(
                    0, (layout.shape().dim(axis) - 1) * layout.strides().get(axis));
        }
        long elements = layout.shape().elements() == 0 ? 0 : last + 1;
        Type flat = new Type(layout.dtype(), ingot.ir.Shape.of(Math.toIntExact(elements)));
        Tensor tensor = Tensor.over(flat, MemorySegment.ofAddress(address).reinterpret(flat.bytes()));
        for (long i = 0; i < elements; i++) {
            float value = tensor.getFloat(i);
            if (Float.isNaN(value) || value == Float.POSITIVE_INFINITY) {
                return layout.type() + " holds " + value + " at element " + i;
            }
        }
        return null;
    }

    private long allocate(Map<String, Type> types, Set<String> bound, Map<String, MemorySegment> into) {
        long bytes = 0;
        for (Map.Entry<String, Type> entry : types.entrySet()) {
            if (bound.contains(entry.getKey())) {
                continue;
            }
            long size = entry.getValue().bytes();
            into.put(entry.getKey(), arena.allocate(Math.max(64, size), 64).asSlice(0, size));
            bytes += size;
        }
        return bytes;
    }

    private long copy(Tensor constant) {
        MemorySegment memory = arena.allocate(Math.max(64, constant.type().bytes()), 64);
        MemorySegment.copy(constant.data(), 0, memory, 0, constant.type().bytes());
        return memory.address();
    }

    private MemorySegment find(Map<String, MemorySegment> memory, String name) {
        MemorySegment found = memory.get(name);
        if (found == null) {
            throw new IngotException(program.name() + ": no input or output " + name + ", it has " + inputs.keySet()
                    + " and " + outputs.keySet());
        }
        return found;
    }

    /// Frees the memory and ends the residency.
    @Override
    public void close() {
        residency.close();
        arena.close();
    }
}
