package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/// The text of a lowered graph: one line per call with its operands and layouts, then each different kernel body once.
///
/// `in0`, `out0`, `t0`, `const0` are slots; a byte offset follows after `+`. Layouts show their strides when they are not row-major.
final class Listing {
    private Listing() {}

    static String of(Lowered lowered) {
        StringBuilder text = new StringBuilder();
        Map<Graph, String> bodies = new LinkedHashMap<>();
        for (Lowered.Call call : lowered.calls()) {
            text.append(line(call, bodies)).append('\n');
        }
        for (int i = 0; i < lowered.results().size(); i++) {
            Lowered.Operand at = lowered.results().get(i);
            if (at.slot() != Lowered.Slot.OUTPUT || at.index() != i || at.byteOffset() != 0) {
                text.append("out").append(i).append(" is ").append(slot(at)).append('\n');
            }
        }
        bodies.forEach((body, name) ->
                text.append(name).append(": ").append(formula(body)).append('\n'));
        return text.toString();
    }

    private static String line(Lowered.Call call, Map<Graph, String> bodies) {
        Kernel kernel = call.kernel();
        StringBuilder text = new StringBuilder(String.format(Locale.ROOT, "%-12s", kernel.kind()));
        List<String> operands = new ArrayList<>();
        List<Layout> layouts = new ArrayList<>(kernel.reads());
        layouts.addAll(kernel.writes());
        for (int i = 0; i < layouts.size(); i++) {
            operands.add(slot(call.operands().get(i)) + " " + layouts.get(i));
        }
        int reads = kernel.reads().size();
        text.append(String.join(", ", operands.subList(0, reads)))
                .append(reads == 0 ? "→ " : " → ")
                .append(String.join(", ", operands.subList(reads, operands.size())));
        String space = switch (kernel) {
            case Kernel.Map map -> name(map.body(), bodies);
            case Kernel.Row row -> name(row.body(), bodies) + " over " + row.space();
            case Kernel.Column column -> name(column.body(), bodies) + " over " + column.space();
            case Kernel.Matmul matmul ->
                (matmul.bias() == null ? "" : "with bias")
                        + (matmul.segments() == 1 ? "" : " in " + matmul.segments() + " segments")
                        + switch (matmul.old()) {
                            case REPLACED -> "";
                            case ADDED -> " accumulating";
                            case CONTINUED -> " continuing";
                        };
            case Kernel.Convolution convolution ->
                convolution.segments() == 1 ? "" : "in " + convolution.segments() + " segments";
            case Kernel.Gather _ -> "";
            case Kernel.ScatterAdd scatter -> scatter.segments() == 1 ? "" : "in " + scatter.segments() + " segments";
            case Kernel.Loop loop -> name(loop.body(), bodies);
        };
        return space.isBlank() ? text.toString() : text + "  | " + space.strip();
    }

    private static String name(Graph body, Map<Graph, String> bodies) {
        return bodies.computeIfAbsent(body, b -> "#" + bodies.size());
    }

    private static String slot(Lowered.Operand operand) {
        String name = switch (operand.slot()) {
            case INPUT -> "in";
            case OUTPUT -> "out";
            case TEMPORARY -> "t";
            case CONSTANT -> "const";
        };
        return name + operand.index() + (operand.byteOffset() == 0 ? "" : "+" + operand.byteOffset());
    }

    /// A body as formulas: values of one use are written inside of their user.
    private static String formula(Graph body) {
        int[] uses = new int[body.values().size()];
        body.values().forEach(value -> value.op().operands().forEach(operand -> uses[operand.id()]++));
        body.outputs().values().forEach(value -> uses[value.id()]++);
        Map<Value, String> names = new LinkedHashMap<>();
        List<String> parts = new ArrayList<>();
        for (Value value : body.values()) {
            boolean leaf = value.op().operands().isEmpty() || value.op() instanceof Op.Broadcast;
            String text = expression(value, names);
            if (!leaf && uses[value.id()] > 1) {
                names.put(value, "v" + value.id());
                parts.add("v" + value.id() + " = " + text);
            } else {
                names.put(value, text);
            }
        }
        body.outputs().forEach((key, value) -> parts.add("→" + key + " = " + names.get(value)));
        return String.join("; ", parts);
    }

    private static String expression(Value value, Map<Value, String> names) {
        List<String> operands = value.op().operands().stream().map(names::get).toList();
        return switch (value.op()) {
            case Op.Input input -> "$" + input.name();
            case Op.Constant constant when value.shape().rank() == 0 -> scalar(constant);
            case Op.Iota iota -> "iota" + iota.axis();
            case Op.Broadcast broadcast when broadcast.x().shape().rank() == 0 -> operands.getFirst();
            case Op.Broadcast _ -> "along(" + operands.getFirst() + ")";
            case Op.Unary unary -> call(unary.kind().name(), operands);
            case Op.Binary binary -> call(binary.kind().name(), operands);
            case Op.Compare compare -> call(compare.kind().name(), operands);
            case Op.Reduce reduce ->
                call(reduce.kind().name(), operands) + (reduce.segments() == 1 ? "" : "/" + reduce.segments());
            case Op.Convert convert -> call(convert.to().text(), operands);
            case Op.Bitcast bitcast -> call("bits " + bitcast.to().text(), operands);
            default -> call(value.op().getClass().getSimpleName(), operands);
        };
    }

    private static String scalar(Op.Constant constant) {
        return switch (constant.data().type().dtype()) {
            case F32, BF16, F16 -> Float.toString(constant.data().getFloat(0));
            case I32, I64, I8, U8 -> Long.toString(constant.data().getLong(0));
            case BOOL -> Boolean.toString(constant.data().getBoolean(0));
        };
    }

    private static String call(String name, List<String> operands) {
        return name.toLowerCase(Locale.ROOT) + operands.stream().collect(Collectors.joining(", ", "(", ")"));
    }
}
