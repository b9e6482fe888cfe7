package ingot.ir;

import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/// The text form of a graph, one line per value; `parse` reads what `print` writes.
///
/// ```
/// function 0 softmax {axis = -1.0} {
///   %0 : f32[4, 8] = input 0
///   …
///   output y = %5
/// }
///
/// graph step {
///   %0 : f32[4, 8] = input x
///   %1 : f32[] = constant 0.5
///   %2 : f32[4, 8] = broadcast %1 axes=[]
///   %3 : f32[4, 8] = multiply %0 %2  // h.0.attn
///   %4 : f32[4, 8] = call softmax#0 %3
///   output probabilities = %4
/// }
/// ```
///
/// Functions come before their callers and are numbered; equal functions have one number. Numbers are exact: the
/// shortest decimal that reads back to the same bits, `nan:` with bits for unusual NaNs, base64 of the little-endian
/// bytes for large constants.
public final class TextForm {
    /// Constants with more elements are written as base64.
    private static final int LISTED = 64;

    private static final Pattern BARE = Pattern.compile("[A-Za-z0-9_.\\-]+");

    private final StringBuilder out = new StringBuilder();
    private final Map<Function, Integer> functions = new LinkedHashMap<>();
    private final boolean scopes;

    private TextForm(boolean scopes) {
        this.scopes = scopes;
    }

    /// Without scopes: graphs that differ only in where they were built print alike.
    public static String print(Graph graph) {
        return print(graph, false);
    }

    public static String print(Graph graph, boolean scopes) {
        TextForm form = new TextForm(scopes);
        form.functions(graph);
        form.out.append("graph ").append(quoted(graph.name())).append(' ');
        form.body(graph);
        return form.out.toString();
    }

    public static Graph parse(String text) {
        return parse(text, List.of());
    }

    /// Reads a graph whose custom ops are among `customs`, found by name.
    public static Graph parse(String text, List<CustomFunction> customs) {
        Map<String, CustomFunction> named = new TreeMap<>();
        customs.forEach(custom -> named.put(custom.name(), custom));
        return new TextParser(text, named).graph();
    }

    private void functions(Graph graph) {
        for (Value value : graph.values()) {
            if (value.op() instanceof Op.Composite composite) {
                function(composite.function());
            }
        }
    }

    private void function(Function function) {
        if (functions.containsKey(function)) {
            return;
        }
        functions(function.definition());
        if (function.gradient() != null) {
            function(function.gradient());
        }
        int number = functions.size();
        functions.put(function, number);
        out.append("function ").append(number).append(' ').append(quoted(function.name()));
        if (!function.attributes().isEmpty()) {
            List<String> parts = new ArrayList<>();
            function.attributes().forEach((key, value) -> parts.add(quoted(key) + " = " + value));
            out.append(" {").append(String.join(", ", parts)).append('}');
        }
        if (function.gradient() != null) {
            out.append(" gradient=").append(functions.get(function.gradient()));
        }
        if (!function.definition().name().equals(function.name())) {
            out.append(" graph=").append(quoted(function.definition().name()));
        }
        out.append(' ');
        body(function.definition());
        out.append('\n');
    }

    private void body(Graph graph) {
        out.append("{\n");
        for (Value value : graph.values()) {
            out.append("  ").append(value).append(" : ").append(value.type()).append(" = ");
            op(value.op());
            String scope = graph.scope(value);
            if (scopes && !scope.isEmpty()) {
                out.append("  // ").append(scope);
            }
            out.append('\n');
        }
        graph.outputs()
                .forEach((key, value) -> out.append("  output ")
                        .append(quoted(key))
                        .append(" = ")
                        .append(value)
                        .append('\n'));
        out.append("}\n");
    }

    private void op(Op op) {
        switch (op) {
            case Op.Input x -> put("input " + quoted(x.name()));
            case Op.Weight x -> put("weight " + quoted(x.name()));
            case Op.Constant x -> put("constant " + elements(x.data()));
            case Op.Iota x -> put("iota").field("axis", x.axis());
            case Op.RandomBits x -> put("random_bits").all(x).field("stream", x.stream());
            case Op.Unary x -> put(lower(x.kind())).all(x);
            case Op.Binary x -> put(lower(x.kind())).all(x);
            case Op.Fma x -> put("fma").all(x);
            case Op.Compare x -> put(lower(x.kind())).all(x);
            case Op.Select x -> put("select").all(x);
            case Op.Convert x -> put("convert").all(x);
            case Op.Bitcast x -> put("bitcast").all(x);
            case Op.Broadcast x -> put("broadcast").all(x).field("axes", x.axes());
            case Op.Reshape x -> put("reshape").all(x);
            case Op.Transpose x -> put("transpose").all(x).field("permutation", x.permutation());
            case Op.Slice x ->
                put("slice")
                        .all(x)
                        .field("starts", x.starts())
                        .field("limits", x.limits())
                        .field("strides", x.strides());
            case Op.Pad x ->
                put("pad").all(x).field("low", x.low()).field("high", x.high()).field("interior", x.interior());
            case Op.Concatenate x -> put("concatenate").all(x).field("axis", x.axis());
            case Op.Reverse x -> put("reverse").all(x).field("axes", x.axes());
            case Op.Gather x -> put("gather").all(x).field("axis", x.axis());
            case Op.ScatterAdd x ->
                put("scatter_add")
                        .all(x)
                        .field("axis", x.axis())
                        .field("size", x.size())
                        .unlessOne("segments", x.segments());
            case Op.TakeAlong x -> put("take_along").all(x).field("axis", x.axis());
            case Op.AddAlong x ->
                put("add_along").all(x).field("axis", x.axis()).field("size", x.size());
            case Op.ArgSort x ->
                put("arg_sort").all(x).field("axis", x.axis()).field("descending", x.descending() ? 1 : 0);
            case Op.Reduce x ->
                put("reduce_" + lower(x.kind())).all(x).field("axes", x.axes()).unlessOne("segments", x.segments());
            case Op.Cumulative x ->
                put("cumulative_" + lower(x.kind()))
                        .all(x)
                        .field("axis", x.axis())
                        .field("reverse", x.reverse() ? 1 : 0);
            case Op.Dot x ->
                put("dot")
                        .all(x)
                        .field("batch_a", x.batchA())
                        .field("batch_b", x.batchB())
                        .field("contract_a", x.contractA())
                        .field("contract_b", x.contractB())
                        .unlessOne("segments", x.segments());
            case Op.Convolution x ->
                put("convolution")
                        .all(x)
                        .window(x.window())
                        .unlessOne("groups", x.groups())
                        .unlessOne("batch_groups", x.batchGroups())
                        .unlessOne("segments", x.segments());
            case Op.ReduceWindow x ->
                put("window_" + lower(x.kind())).all(x).field("size", x.size()).window(x.window());
            case Op.ScatterWindowMax x ->
                put("scatter_window_max").all(x).field("size", x.size()).window(x.window());
            case Op.Composite x ->
                put("call " + quoted(x.function().name()) + "#" + functions.get(x.function()))
                        .all(x);
            case Op.Result x -> put("result").all(x).field("index", x.index());
            case Op.Custom x -> put("custom " + quoted(x.function().name())).all(x);
        }
    }

    private TextForm put(String text) {
        out.append(text);
        return this;
    }

    private TextForm all(Op op) {
        op.operands().forEach(operand -> out.append(' ').append(operand));
        return this;
    }

    private TextForm field(String key, Object value) {
        out.append(' ').append(key).append('=').append(value);
        return this;
    }

    private TextForm unlessOne(String key, int value) {
        return value == 1 ? this : field(key, value);
    }

    private TextForm window(Op.Window w) {
        return field("strides", w.strides())
                .field("low", w.low())
                .field("high", w.high())
                .field("input_dilation", w.inputDilation())
                .field("window_dilation", w.windowDilation());
    }

    private static String lower(Enum<?> kind) {
        return kind.name().toLowerCase(Locale.ROOT);
    }

    static String quoted(String name) {
        if (BARE.matcher(name).matches()) {
            return name;
        }
        StringBuilder text = new StringBuilder("\"");
        for (char c : name.toCharArray()) {
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < ' ') {
                text.append(String.format(Locale.ROOT, "\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        return text.append('"').toString();
    }

    private static String elements(Tensor t) {
        int n = Math.toIntExact(t.shape().elements());
        if (t.shape().rank() == 0) {
            return element(t, 0);
        }
        int width = t.type().dtype().bytes();
        if (n > 1
                && t.data().asSlice(0, (long) (n - 1) * width).mismatch(t.data().asSlice(width)) < 0) {
            return "splat " + element(t, 0);
        }
        if (n > LISTED) {
            byte[] bytes = t.data().toArray(java.lang.foreign.ValueLayout.JAVA_BYTE);
            return "base64 " + Base64.getEncoder().encodeToString(bytes);
        }
        List<String> parts = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            parts.add(element(t, i));
        }
        return "{" + String.join(", ", parts) + "}";
    }

    private static String element(Tensor t, int i) {
        return switch (t.type().dtype()) {
            case F32, BF16, F16 -> real(t, i);
            case I32, I64, I8, U8 -> Long.toString(t.getLong(i));
            case BOOL -> Boolean.toString(t.getBoolean(i));
        };
    }

    private static String real(Tensor t, int i) {
        float value = t.getFloat(i);
        if (Float.isNaN(value)) {
            int bits = t.type().dtype() == DType.F32
                    ? t.data().get(java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED, 4L * i)
                    : t.data().get(java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED, 2L * i) & 0xFFFF;
            return "nan:" + Integer.toHexString(bits);
        }
        if (Float.isInfinite(value)) {
            return value > 0 ? "inf" : "-inf";
        }
        return Float.toString(value);
    }
}
