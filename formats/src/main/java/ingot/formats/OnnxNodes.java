package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Nodes of a graph that is being written, their attributes and their constants.
final class OnnxNodes {
    private final OnnxFields out;
    private final Graph graph;
    private final OnnxSymbols symbols;
    private final Map<Long, String> sizes = new HashMap<>(); // open sizes that a node computes already, I64[1]
    private int names;

    OnnxNodes(OnnxFields out, Graph graph, OnnxSymbols symbols) {
        this.out = out;
        this.graph = graph;
        this.symbols = symbols;
    }

    String fresh() {
        return OnnxExport.NAMES + names++;
    }

    String one(String operator, List<String> inputs, String scope, OnnxFields... attributes) {
        String output = fresh();
        node(operator, "", inputs, List.of(output), List.of(attributes), scope);
        return output;
    }

    void node(String operator, String domain, List<String> inputs, List<String> outputs, List<OnnxFields> attributes) {
        node(operator, domain, inputs, outputs, attributes, "");
    }

    void node(
            String operator,
            String domain,
            List<String> inputs,
            List<String> outputs,
            List<OnnxFields> attributes,
            String scope) {
        OnnxFields node = new OnnxFields();
        inputs.forEach(input -> node.text(1, input));
        outputs.forEach(output -> node.text(2, output));
        node.text(3, (scope.isEmpty() ? "" : scope + "/") + operator + "/" + names++)
                .text(4, operator);
        attributes.forEach(attribute -> node.message(5, attribute));
        if (!domain.isEmpty()) {
            node.text(7, domain);
        }
        out.message(1, node);
    }

    static OnnxFields integer(String name, long value) {
        return new OnnxFields().text(1, name).integer(3, value).integer(20, 2);
    }

    static OnnxFields number(String name, double value) {
        return new OnnxFields().text(1, name).floating(2, (float) value).integer(20, 1);
    }

    static OnnxFields text(String name, String value) {
        return new OnnxFields().text(1, name).text(4, value).integer(20, 3);
    }

    static OnnxFields integers(String name, List<Integer> values) {
        OnnxFields attribute = new OnnxFields().text(1, name);
        values.forEach(value -> attribute.integer(8, value));
        return attribute.integer(20, 7);
    }

    String constant(Tensor value) {
        OnnxFields tensor = new OnnxFields();
        for (int dim : value.shape().dims()) {
            tensor.integer(1, dim);
        }
        tensor.integer(2, OnnxType.of(value.type().dtype()).id()).bytes(9, value.data());
        OnnxFields attribute =
                new OnnxFields().text(1, "value").message(5, tensor).integer(20, 4);
        String output = fresh();
        node("Constant", "", List.of(), List.of(output), List.of(attribute));
        return output;
    }

    /// I64 of these values; open sizes among them are computed when the model runs.
    String numbers(long[] values) {
        List<String> parts = new ArrayList<>();
        for (int i = 0; i < values.length; ) {
            int from = i;
            while (i < values.length && !symbols.isOpen(values[i])) {
                i++;
            }
            if (i > from) {
                parts.add(constants(java.util.Arrays.copyOfRange(values, from, i)));
            } else {
                parts.add(size(values[i++]));
            }
        }
        return switch (parts.size()) {
            case 0 -> constants(values);
            case 1 -> parts.getFirst();
            default -> one("Concat", parts, "", integer("axis", 0));
        };
    }

    /// An open size: of an input, or the product of several and a number.
    String size(long value) {
        String known = sizes.get(value);
        if (known != null) {
            return known;
        }
        OnnxSymbols.Product product = symbols.product(value);
        List<String> factors = new ArrayList<>();
        product.powers().forEach((symbol, power) -> {
            String size = symbol(symbol);
            for (int i = 0; i < power; i++) {
                factors.add(size);
            }
        });
        if (product.factor() != 1) {
            factors.add(constants(new long[] {product.factor()}));
        }
        String result = factors.getFirst();
        for (String factor : factors.subList(1, factors.size())) {
            result = one("Mul", List.of(result, factor), "");
        }
        sizes.put(value, result);
        return result;
    }

    private String symbol(String symbol) {
        long prime = java.util.Objects.requireNonNull(symbols.primes().get(symbol));
        String known = sizes.get(prime);
        if (known != null) {
            return known;
        }
        for (Value input : graph.inputs()) {
            for (int axis = 0; axis < input.shape().rank(); axis++) {
                if (input.shape().dim(axis) == prime) {
                    String name = ((Op.Input) input.op()).name();
                    String size = one("Shape", List.of(name), "", integer("start", axis), integer("end", axis + 1L));
                    sizes.put(prime, size);
                    return size;
                }
            }
        }
        throw new IngotException("onnx: no input has the size " + symbol + ", so it cannot be left open");
    }

    String constants(long[] values) {
        Tensor tensor = Tensor.zeros(new Type(DType.I64, Shape.of(values.length)));
        for (int i = 0; i < values.length; i++) {
            tensor.setLong(i, values[i]);
        }
        return constant(tensor);
    }

    static long[] longs(List<Integer> values) {
        return values.stream().mapToLong(Integer::longValue).toArray();
    }

    static long[] longs(Shape shape) {
        return IntStream.of(shape.dims()).asLongStream().toArray();
    }
}
