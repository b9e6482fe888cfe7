package ingot.ir;

import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Reads the text form. One line at a time, each through a `TextLine`.
final class TextParser {
    private final List<String> lines;
    private final Map<String, CustomFunction> customs;
    private final List<Function> functions = new ArrayList<>();
    private int next;

    TextParser(String text, Map<String, CustomFunction> customs) {
        this.lines = text.lines().toList();
        this.customs = customs;
    }

    Graph graph() {
        while (true) {
            TextLine line = line();
            switch (line.word()) {
                case "function" -> function(line);
                case "graph" -> {
                    String name = line.name();
                    line.expect("{");
                    Graph graph = body(name);
                    while (next < lines.size()) {
                        if (!lines.get(next++).isBlank()) {
                            throw failure("nothing may follow the graph");
                        }
                    }
                    return graph;
                }
                case String other -> throw failure("expected function or graph, got " + other);
            }
        }
    }

    private void function(TextLine line) {
        int number = line.integer();
        if (number != functions.size()) {
            throw failure("functions are numbered in order, expected " + functions.size() + ", got " + number);
        }
        String name = line.name();
        TreeMap<String, Double> attributes = new TreeMap<>();
        Function gradient = null;
        String graphName = name;
        boolean opened = line.take("{");
        if (opened && !line.atEnd()) {
            do {
                String key = line.name();
                line.expect("=");
                attributes.put(key, line.real());
            } while (line.take(","));
            line.expect("}");
            opened = false;
        }
        if (line.take("gradient=")) {
            gradient = called(line.integer());
        }
        if (line.take("graph=")) {
            graphName = line.name();
        }
        if (!opened) {
            line.expect("{");
        }
        functions.add(new Function(name, attributes, body(graphName), gradient));
    }

    private Function called(int number) {
        if (number < 0 || number >= functions.size()) {
            throw failure("function " + number + " is not defined above");
        }
        return functions.get(number);
    }

    private Graph body(String name) {
        GraphBuilder b = new GraphBuilder(name);
        while (true) {
            TextLine line = line();
            if (line.take("}")) {
                return b.build();
            }
            if (line.take("output ")) {
                String key = line.name();
                line.expect("=");
                b.output(key, line.value(b));
                continue;
            }
            line.expect("%");
            int id = line.integer();
            line.expect(":");
            Type type = line.type();
            line.expect("=");
            Op op = op(line, type, b);
            b.enterScope(line.scope());
            Value value;
            try {
                value = b.add(op);
            } catch (IngotException e) {
                throw new IngotException("text form, line " + next + ": " + e.getMessage(), e);
            }
            if (value.id() != id || b.values().size() != id + 1) {
                throw failure("expected %" + b.values().size() + " and no op twice, got %" + id);
            }
            if (!value.type().equals(type)) {
                throw failure("%" + id + " is said to be " + type + ", its op gives " + value.type());
            }
        }
    }

    private Op op(TextLine line, Type type, GraphBuilder b) {
        String name = line.word();
        switch (name) {
            case "input" -> {
                return new Op.Input(line.name(), type);
            }
            case "weight" -> {
                return new Op.Weight(line.name(), type);
            }
            case "constant" -> {
                return new Op.Constant(constant(line, type));
            }
            case "call" -> {
                String function = line.name();
                line.expect("#");
                Function called = called(line.integer());
                if (!called.name().equals(function)) {
                    throw failure("the called function is named " + called.name() + ", not " + function);
                }
                return new Op.Composite(called, line.values(b));
            }
            case "custom" -> {
                String custom = line.name();
                CustomFunction function = customs.get(custom);
                if (function == null) {
                    throw failure(
                            "custom op " + custom + " is not given to the parser, which knows " + customs.keySet());
                }
                return new Op.Custom(function, line.values(b));
            }
            default -> {
                List<Value> v = line.values(b);
                return op(name, type, v, line.fields());
            }
        }
    }

    private Op op(String name, Type type, List<Value> v, TextLine.Fields f) {
        @Nullable Op pointwise = pointwise(name, v);
        if (pointwise != null) {
            return pointwise;
        }
        int operands = switch (name) {
            case "iota" -> 0;
            case "pad", "gather", "scatter_add", "take_along", "add_along", "convolution" -> 2;
            case "dot" -> v.size() == 3 ? 3 : 2;
            case "scatter_window_max" -> 2;
            case "concatenate" -> v.size();
            default -> 1;
        };
        if (v.size() != operands) {
            throw failure(name + " has " + operands + " operands, got " + v.size());
        }
        Op op = switch (name) {
            case "iota" -> new Op.Iota(type, f.integer("axis"));
            case "random_bits" -> new Op.RandomBits(type.shape(), f.integer("stream"), v.get(0));
            case "convert" -> new Op.Convert(v.get(0), type.dtype());
            case "bitcast" -> new Op.Bitcast(v.get(0), type.dtype());
            case "broadcast" -> new Op.Broadcast(v.get(0), type.shape(), f.list("axes"));
            case "reshape" -> new Op.Reshape(v.get(0), type.shape());
            case "transpose" -> new Op.Transpose(v.get(0), f.list("permutation"));
            case "slice" -> new Op.Slice(v.get(0), f.list("starts"), f.list("limits"), f.list("strides"));
            case "pad" -> new Op.Pad(v.get(0), v.get(1), f.list("low"), f.list("high"), f.list("interior"));
            case "concatenate" -> new Op.Concatenate(v, f.integer("axis"));
            case "reverse" -> new Op.Reverse(v.get(0), f.list("axes"));
            case "gather" -> new Op.Gather(v.get(0), v.get(1), f.integer("axis"));
            case "scatter_add" ->
                new Op.ScatterAdd(v.get(0), v.get(1), f.integer("axis"), f.integer("size"), f.orOne("segments"));
            case "take_along" -> new Op.TakeAlong(v.get(0), v.get(1), f.integer("axis"));
            case "add_along" -> new Op.AddAlong(v.get(0), v.get(1), f.integer("axis"), f.integer("size"));
            case "arg_sort" -> new Op.ArgSort(v.get(0), f.integer("axis"), f.integer("descending") == 1);
            case "dot" ->
                new Op.Dot(
                        v.get(0),
                        v.get(1),
                        f.list("batch_a"),
                        f.list("batch_b"),
                        f.list("contract_a"),
                        f.list("contract_b"),
                        f.orOne("segments"),
                        v.size() > 2 ? v.get(2) : null);
            case "convolution" ->
                new Op.Convolution(
                        v.get(0),
                        v.get(1),
                        f.window(),
                        f.orOne("groups"),
                        f.orOne("batch_groups"),
                        f.orOne("segments"));
            case "scatter_window_max" -> new Op.ScatterWindowMax(v.get(0), v.get(1), f.list("size"), f.window());
            case "result" -> new Op.Result(v.get(0), f.integer("index"));
            default -> reduction(name, v, f);
        };
        f.allUsed();
        return op;
    }

    private @Nullable Op pointwise(String name, List<Value> v) {
        String kind = name.toUpperCase(Locale.ROOT);
        if (v.size() == 1 && has(UnaryKind.values(), kind)) {
            return new Op.Unary(UnaryKind.valueOf(kind), v.get(0));
        }
        if (v.size() == 2 && has(BinaryKind.values(), kind)) {
            return new Op.Binary(BinaryKind.valueOf(kind), v.get(0), v.get(1));
        }
        if (v.size() == 2 && has(CompareKind.values(), kind)) {
            return new Op.Compare(CompareKind.valueOf(kind), v.get(0), v.get(1));
        }
        if (v.size() == 3 && name.equals("fma")) {
            return new Op.Fma(v.get(0), v.get(1), v.get(2));
        }
        if (v.size() == 3 && name.equals("select")) {
            return new Op.Select(v.get(0), v.get(1), v.get(2));
        }
        return null;
    }

    private Op reduction(String name, List<Value> v, TextLine.Fields f) {
        int split = name.indexOf('_');
        String kind = name.substring(split + 1).toUpperCase(Locale.ROOT);
        if (split > 0 && has(ReduceKind.values(), kind)) {
            ReduceKind reduce = ReduceKind.valueOf(kind);
            switch (name.substring(0, split)) {
                case "reduce" -> {
                    return new Op.Reduce(reduce, v.get(0), f.list("axes"), f.orOne("segments"));
                }
                case "cumulative" -> {
                    return new Op.Cumulative(reduce, v.get(0), f.integer("axis"), f.integer("reverse") == 1);
                }
                case "window" -> {
                    return new Op.ReduceWindow(reduce, v.get(0), f.list("size"), f.window());
                }
                default -> {}
            }
        }
        throw failure("unknown op " + name + " with " + v.size() + " operands");
    }

    private static boolean has(Enum<?>[] kinds, String name) {
        return Arrays.stream(kinds).anyMatch(kind -> kind.name().equals(name));
    }

    private Tensor constant(TextLine line, Type type) {
        Tensor tensor = Tensor.zeros(type);
        int n = Math.toIntExact(type.shape().elements());
        if (line.take("base64 ")) {
            byte[] bytes = Base64.getDecoder().decode(line.chunk());
            if (bytes.length != type.bytes()) {
                throw failure(type + " needs " + type.bytes() + " bytes, got " + bytes.length);
            }
            return Tensor.over(type, MemorySegment.ofArray(bytes));
        }
        if (line.take("splat ")) {
            String text = line.word();
            for (int i = 0; i < n; i++) {
                element(tensor, i, text);
            }
        } else if (line.take("{")) {
            for (int i = 0; i < n; i++) {
                if (i > 0) {
                    line.expect(",");
                }
                element(tensor, i, line.word());
            }
            line.expect("}");
        } else {
            if (n != 1) {
                throw failure(type + " needs " + n + " elements in braces");
            }
            element(tensor, 0, line.word());
        }
        return tensor;
    }

    private void element(Tensor tensor, int i, String text) {
        try {
            if (tensor.type().dtype() == DType.BOOL) {
                if (!text.equals("true") && !text.equals("false")) {
                    throw failure("expected true or false, got " + text);
                }
                tensor.setLong(i, text.equals("true") ? 1 : 0);
            } else if (!tensor.type().dtype().isFloating()) {
                tensor.setLong(i, Long.parseLong(text));
            } else if (text.startsWith("nan:")) {
                int bits = Integer.parseUnsignedInt(text.substring(4), 16);
                if (tensor.type().dtype() == DType.F32) {
                    tensor.data().set(ValueLayout.JAVA_INT_UNALIGNED, 4L * i, bits);
                } else {
                    tensor.data().set(ValueLayout.JAVA_SHORT_UNALIGNED, 2L * i, (short) bits);
                }
            } else {
                tensor.setFloat(
                        i,
                        switch (text) {
                            case "nan" -> Float.NaN;
                            case "inf" -> Float.POSITIVE_INFINITY;
                            case "-inf" -> Float.NEGATIVE_INFINITY;
                            default -> Float.parseFloat(text);
                        });
            }
        } catch (NumberFormatException e) {
            throw new IngotException(
                    "text form, line " + next + ": " + text + " is no "
                            + tensor.type().dtype().text(),
                    e);
        }
    }

    private TextLine line() {
        while (next < lines.size()) {
            String line = lines.get(next++);
            if (!line.isBlank()) {
                return new TextLine(line, next);
            }
        }
        throw failure("the text ends too early");
    }

    private IngotException failure(String message) {
        return new IngotException("text form, line " + next + ": " + message);
    }
}
