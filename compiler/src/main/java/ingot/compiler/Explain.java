package ingot.compiler;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

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
            String line =
                    switch (step) {
                        case Step.Run _ -> "run";
                        case Step.Reduce _ -> "reduce";
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
