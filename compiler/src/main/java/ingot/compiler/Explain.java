package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Programs and kernels as text.
public final class Explain {
    private Explain() {}

    /// One line per step.
    public static String program(Program program) {
        StringBuilder text =
                new StringBuilder("program ").append(program.name()).append('\n');
        for (Step step : program.steps()) {
            text.append(step(program, step)).append('\n');
        }
        return text.toString();
    }

    /// The steps without their operands, equal ones counted.
    public static String outline(Program program) {
        StringBuilder text = new StringBuilder();
        String last = "";
        int count = 0;
        for (Step step : program.steps()) {
            String line = switch (step) {
                case Step.Run _ -> "run";
                case Step.Reduce _ -> "reduce";
                case Step.Spill _ -> "spill";
                case Step.Fetch _ -> "fetch";
                case Step.Await _ -> "await";
                case Step.Load _, Step.Update _, Step.Store _, Step.Free _, Step.Commit _ -> step(program, step);
            };
            if (!line.equals(last)) {
                append(text, last, count);
                count = 0;
            }
            last = line;
            count++;
        }
        append(text, last, count);
        return text.toString();
    }

    private static void append(StringBuilder text, String line, int count) {
        if (count > 0) {
            text.append(line)
                    .append(line.equals("run") || line.equals("reduce") ? " × " + count : "")
                    .append('\n');
        }
    }

    /// Stages, their kernels, the work of a step and the memory plan.
    public static String summary(Program program) {
        StringBuilder text = new StringBuilder();
        long distinct = program.stages().stream()
                .map(Program.Stage::signature)
                .distinct()
                .count();
        text.append(String.format(
                Locale.ROOT,
                "program %s: %d stages, %d distinct; %d steps, %.3f GFLOP%n",
                program.name(),
                program.stages().size(),
                distinct,
                program.steps().size(),
                flops(program) / 1e9));
        List<Map<String, Integer>> kinds = new ArrayList<>();
        program.stages().forEach(stage -> kinds.add(new TreeMap<>()));
        double[] work = new double[kinds.size()];
        int at = 0;
        for (Step step : program.steps()) {
            if (step instanceof Step.Load load) {
                at = load.stage();
            } else if (step instanceof Step.Run run) {
                kinds.get(at).merge(run.kernel().kind(), 1, Integer::sum);
                work[at] += flops(run.kernel());
            }
        }
        for (Program.Stage stage : program.stages()) {
            text.append(String.format(
                    Locale.ROOT,
                    "  %3d %-16s %s  %8.3f GFLOP  %s%n",
                    stage.index(),
                    stage.name(),
                    stage.signature(),
                    work[stage.index()] / 1e9,
                    kinds.get(stage.index()).entrySet().stream()
                            .map(entry -> entry.getValue() + " " + entry.getKey())
                            .collect(Collectors.joining(", "))));
        }
        Program.MemoryPlan memory = program.memory();
        line(text, "activations", memory.activationBytes());
        line(text, "  alive at once", memory.liveBytes());
        line(text, "weights", memory.weightBytes());
        line(text, "gradients", memory.gradientBytes());
        line(text, "constants", memory.constantBytes());
        line(text, "inputs, outputs", memory.interfaceBytes());
        return text.toString();
    }

    private static void line(StringBuilder text, String what, long bytes) {
        text.append(String.format(Locale.ROOT, "  %-16s %,15d bytes%n", what, bytes));
    }

    /// Bytes of a kernel's operands, each once and without what is repeated.
    public static double bytes(Kernel kernel) {
        return Stream.concat(kernel.reads().stream(), kernel.writes().stream())
                .mapToDouble(Explain::bytes)
                .sum();
    }

    private static double bytes(Layout layout) {
        double elements = 1;
        for (int axis = 0; axis < layout.shape().rank(); axis++) {
            elements *= layout.stride(axis) == 0 ? 1 : layout.shape().dim(axis);
        }
        return elements * layout.dtype().bytes();
    }

    /// Floating-point operations of one run: a multiply-add counts two.
    public static double flops(Program program) {
        return program.steps().stream()
                .mapToDouble(step -> step instanceof Step.Run run ? flops(run.kernel()) : 0)
                .sum();
    }

    /// Exact for matrix products, one per body op and element for what is fused; data movement is free.
    public static double flops(Kernel kernel) {
        return switch (kernel) {
            case Kernel.Matmul matmul ->
                2.0 * matmul.c().shape().elements() * matmul.a().shape().dim(-1);
            case Kernel.Convolution convolution ->
                2.0
                        * convolution.out().shape().elements()
                        * convolution.kernel().shape().elements()
                        / Math.max(
                                1,
                                convolution.kernel().shape().dim(0)
                                        * (long) convolution.kernel().shape().dim(1));
            case Kernel.Map map -> arithmetic(map.body());
            case Kernel.Row row -> arithmetic(row.body());
            case Kernel.Column column -> arithmetic(column.body());
            case Kernel.ScatterAdd add -> add.updates().shape().elements();
            case Kernel.Gather _ -> 0;
            case Kernel.Loop loop -> arithmetic(loop.body());
        };
    }

    private static double arithmetic(Graph body) {
        double sum = 0;
        for (Value value : body.values()) {
            sum += switch (value.op()) {
                case Op.Unary _, Op.Binary _, Op.Compare _, Op.Select _ ->
                    value.shape().elements();
                case Op.Fma _ -> 2.0 * value.shape().elements();
                case Op.Reduce reduce -> reduce.x().shape().elements();
                case Op.Dot dot -> {
                    double k = dot.contractA().stream()
                            .mapToLong(axis -> dot.a().shape().dim(axis))
                            .reduce(1, (x, y) -> x * y);
                    yield 2 * k * value.shape().elements();
                }
                case Op.Convolution convolution ->
                    2.0
                            * value.shape().elements()
                            * convolution.kernel().shape().elements()
                            / Math.max(1, convolution.kernel().shape().dim(0));
                case Op _ -> 0;
            };
        }
        return sum;
    }

    /// One line per call.
    static String kernels(Lowered lowered) {
        StringBuilder text = new StringBuilder();
        for (Lowered.Call call : lowered.calls()) {
            List<String> operands = call.operands().stream()
                    .map(o -> o.slot().name().toLowerCase(Locale.ROOT) + " " + o.index()
                            + (o.byteOffset() == 0 ? "" : " + " + o.byteOffset()))
                    .toList();
            text.append(kernel(call.kernel(), operands)).append('\n');
        }
        return text.toString();
    }

    private static String step(Program program, Step step) {
        return switch (step) {
            case Step.Load load -> "load " + stage(program, load.stage());
            case Step.Update update -> "update " + stage(program, update.stage());
            case Step.Run run ->
                "  "
                        + kernel(
                                run.kernel(),
                                run.operands().stream().map(Explain::operand).toList());
            case Step.Reduce reduce ->
                "  reduce " + operand(reduce.left()) + " += " + operand(reduce.right()) + " × " + reduce.elements();
            case Step.Spill spill -> "spill " + operand(spill.from()) + " to " + spill.position();
            case Step.Fetch fetch -> "fetch " + operand(fetch.to()) + " from " + fetch.position();
            case Step.Await await -> "await " + operand(await.memory()) + " at " + await.position();
            case Step.Store store -> "store " + stage(program, store.stage());
            case Step.Free free -> "free " + stage(program, free.stage());
            case Step.Commit _ -> "commit";
        };
    }

    private static String stage(Program program, int index) {
        Program.Stage stage = program.stages().get(index);
        return index + " " + stage.name();
    }

    private static String kernel(Kernel kernel, List<String> operands) {
        List<String> reads = new ArrayList<>();
        List<String> writes = new ArrayList<>();
        for (int i = 0; i < operands.size(); i++) {
            if (i < kernel.reads().size()) {
                reads.add(operands.get(i) + " " + kernel.reads().get(i).type());
            } else {
                int at = i - kernel.reads().size();
                writes.add(operands.get(i) + " " + kernel.writes().get(at).type());
            }
        }
        return String.join(", ", writes) + " = " + kernel.kind() + " " + String.join(", ", reads);
    }

    private static String operand(Step.Operand operand) {
        String buffer = switch (operand.buffer()) {
            case Buffer.Input input -> "input " + input.name();
            case Buffer.Output output -> "output " + output.name();
            case Buffer.Weight weight -> "weight " + weight.name();
            case Buffer.Gradient gradient -> "gradient " + gradient.weight();
            case Buffer.Activation activation -> "@" + activation.offset();
            case Buffer.Constant constant -> "constant " + constant.index();
        };
        return operand.byteOffset() == 0 ? buffer : buffer + "+" + operand.byteOffset();
    }
}
