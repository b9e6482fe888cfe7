package ingot.compiler;

import ingot.ir.Tensor;
import ingot.ir.Type;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Walks a program step by step over memory that holds garbage wherever nothing was written; a weight is garbage
/// outside of its stage.
final class TinyExecutor {
    private static final byte GARBAGE = (byte) 0x7F;

    private final Program program;
    private final Backend backend;
    private final Arena arena = Arena.ofAuto();
    private final Map<Kernel, Backend.Executable> executables = new HashMap<>();
    private final Map<Buffer, MemorySegment> memory = new HashMap<>();
    private final Map<Long, byte[]> spilled = new HashMap<>();
    private final Map<Long, Runnable> waiting = new HashMap<>(); // transfers that were begun
    private final MemorySegment activations;

    TinyExecutor(Program program, Backend backend) {
        this.program = program;
        this.backend = backend;
        activations = garbage(program.memory().activationBytes());
    }

    /// Outputs by name, gradients by `∂` and the name of their weight.
    static SequencedMap<String, Tensor> run(
            Program program, Backend backend, Map<String, Tensor> inputs, Map<String, Tensor> weights) {
        return new TinyExecutor(program, backend).run(inputs, weights);
    }

    /// Memory of a buffer of the caller, to look at or to share.
    void bind(Buffer buffer, MemorySegment segment) {
        memory.put(buffer, segment);
    }

    SequencedMap<String, Tensor> run(Map<String, Tensor> inputs, Map<String, Tensor> weights) {
        program.inputs().forEach((name, type) -> {
            Tensor given = inputs.get(name);
            if (given == null || !given.type().equals(type)) {
                throw new AssertionError("input " + name + " expected " + type + ", got " + given);
            }
            memory.computeIfAbsent(new Buffer.Input(name), b -> garbage(type.bytes()))
                    .copyFrom(given.data());
        });
        program.outputs()
                .forEach((name, type) -> memory.computeIfAbsent(new Buffer.Output(name), b -> garbage(type.bytes())));
        program.weights().forEach((name, type) -> {
            memory.put(new Buffer.Weight(name), garbage(type.bytes()));
            memory.put(new Buffer.Gradient(name), garbage(type.bytes()));
        });
        for (int i = 0; i < program.constants().size(); i++) {
            Tensor constant = program.constants().get(i);
            MemorySegment segment = garbage(constant.type().bytes());
            segment.copyFrom(constant.data());
            memory.put(new Buffer.Constant(i), segment);
        }
        for (Step step : program.steps()) {
            switch (step) {
                case Step.Load load ->
                    program.stages()
                            .get(load.stage())
                            .weights()
                            .forEach(name -> at(new Buffer.Weight(name)).copyFrom(part(weights, program.tile(name))));
                case Step.Free free ->
                    program.stages()
                            .get(free.stage())
                            .weights()
                            .forEach(name -> at(new Buffer.Weight(name)).fill(GARBAGE));
                case Step.Run run -> execute(run.kernel(), run.operands());
                case Step.Reduce reduce ->
                    execute(
                            Copies.add(Type.f32(Math.toIntExact(reduce.elements()))),
                            List.of(reduce.left(), reduce.right(), reduce.left()));
                // a transfer happens as late as it may
                case Step.Spill spill ->
                    waiting.put(spill.position(), () -> {
                        MemorySegment from =
                                MemorySegment.ofAddress(address(spill.from())).reinterpret(spill.bytes());
                        spilled.put(spill.position(), from.toArray(java.lang.foreign.ValueLayout.JAVA_BYTE));
                        from.fill(GARBAGE);
                    });
                case Step.Fetch fetch -> {
                    MemorySegment to =
                            MemorySegment.ofAddress(address(fetch.to())).reinterpret(fetch.bytes());
                    to.fill(GARBAGE);
                    waiting.put(
                            fetch.position(), () -> to.copyFrom(MemorySegment.ofArray(spilled.get(fetch.position()))));
                }
                case Step.Await await -> waiting.remove(await.position()).run();
                case Step.Update _, Step.Store _, Step.Commit _ -> {}
            }
        }
        SequencedMap<String, Tensor> results = new LinkedHashMap<>();
        program.outputs().forEach((name, type) -> results.put(name, tensor(type, at(new Buffer.Output(name)))));
        program.stages()
                .forEach(stage -> stage.owns().forEach(name -> {
                    Program.Tile tile = program.tile(name);
                    results.computeIfAbsent(
                                    "∂" + tile.weight(),
                                    k -> Tensor.zeros(weights.get(tile.weight()).type()))
                            .data()
                            .asSlice(4 * tile.first(), 4 * tile.elements())
                            .copyFrom(at(new Buffer.Gradient(name)));
                }));
        return results;
    }

    private static MemorySegment part(Map<String, Tensor> weights, Program.Tile tile) {
        Tensor whole = weights.get(tile.weight());
        int bytes = whole.type().dtype().bytes();
        return whole.data().asSlice(bytes * tile.first(), bytes * tile.elements());
    }

    private void execute(Kernel kernel, List<Step.Operand> operands) {
        long[] addresses = new long[operands.size()];
        for (int i = 0; i < addresses.length; i++) {
            addresses[i] = address(operands.get(i));
        }
        Backend.Executable executable = executables.computeIfAbsent(kernel, backend::prepare);
        MemorySegment scratch = garbage(executable.scratchBytes());
        executable.run(addresses, scratch.address());
    }

    private long address(Step.Operand operand) {
        return operand.byteOffset()
                + (operand.buffer() instanceof Buffer.Activation activation
                        ? activations
                                .asSlice(activation.offset(), activation.bytes())
                                .address()
                        : at(operand.buffer()).address());
    }

    private MemorySegment at(Buffer buffer) {
        MemorySegment segment = memory.get(buffer);
        if (segment == null) {
            throw new AssertionError("no memory for " + buffer);
        }
        return segment;
    }

    private MemorySegment garbage(long bytes) {
        return arena.allocate(Math.max(64, bytes), 4096).fill(GARBAGE).asSlice(0, bytes);
    }

    private static Tensor tensor(Type type, MemorySegment segment) {
        Tensor copy = Tensor.zeros(type);
        copy.data().copyFrom(segment);
        return copy;
    }
}
