package ingot.cli;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.compiler.TrainingSpec;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/// What one step of training a graph takes on this machine: the memory plan of its program, and its kernels timed.
record TrainingCost(Program program, KernelTimes times) {
    /// First and second moment.
    private static final int MOMENTS = 2;
    private static final String ROWS = "rows";

    /// @param loss the graph of a whole batch, with the output `loss`
    static TrainingCost measure(Graph loss) {
        Graph whole = once(loss);
        Program program = Compiler.training(
                new TrainingSpec(rows -> whole, "loss", 1, 1, 1, Set.of(ROWS), Set.of(), false, Set.of()));
        try (TilePool pool = new TilePool(Threads.of(0))) {
            Backend backend = new CpuBackend(pool, Autotuner.ofMachine());
            try (KernelTimes.Probe probe = new KernelTimes.Probe(program, backend, pool)) {
                return new TrainingCost(program, probe.measure());
            }
        }
    }

    /// The whole batch as one row, which the compiler divides no further: any graph can be costed, also one that mixes
    /// rows.
    private static Graph once(Graph loss) {
        GraphBuilder b = new GraphBuilder(loss.name());
        List<Value> inputs = loss.inputs().stream()
                .map(input -> b.input(((Op.Input) input.op()).name(), input.type()))
                .toList();
        Value value = b.inline(loss, inputs).getFirst();
        b.output("loss", b.multiply(value, b.sum(b.input(ROWS, Type.f32(1)), 0)));
        return b.build();
    }

    /// Lines for people: memory, computation, time.
    List<String> lines(long available) {
        Program.MemoryPlan plan = program.memory();
        long moments = MOMENTS * plan.gradientBytes();
        long all = plan.total() + moments;
        List<String> lines = new ArrayList<>();
        lines.add(Quantity.bytes(all) + ": weights " + Quantity.bytes(plan.weightBytes()) + ", gradients "
                + Quantity.bytes(plan.gradientBytes()) + ", moments of Adam " + Quantity.bytes(moments)
                + ", activations " + Quantity.bytes(plan.activationBytes()));
        lines.add(
                all <= available
                        ? "fits into the " + Quantity.bytes(available) + " that are free"
                        : "more than the " + Quantity.bytes(available)
                                + " that are free: weights, gradients and moments" + " stream from disk");
        double seconds = times.forward() + times.backward();
        lines.add(Quantity.metric(times.flops()) + "FLOP per step at " + Quantity.metric(times.flops() / seconds)
                + "FLOP/s: " + Quantity.duration(seconds) + "; "
                + Math.round(100 * times.timed()) + "% of it by kernels that were timed here");
        return lines;
    }
}
