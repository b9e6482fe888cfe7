package ingot.formats;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import ingot.nn.Randomness;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// One node while its values are built: operands, attributes, and what is known of them before run time.
record OnnxCall(OnnxImporter importer, OnnxScope scope, OnnxNode node, long opset) {
    GraphBuilder b() {
        return importer.builder();
    }

    boolean isTraining() {
        return importer.binding().training();
    }

    Randomness randomness() {
        return importer.randomness();
    }

    // ---- operands

    int inputs() {
        return node.inputs().size();
    }

    boolean has(int i) {
        return i < inputs() && !node.inputs().get(i).isEmpty();
    }

    Value in(int i) {
        if (!has(i)) {
            throw new IngotException("input " + i + " is missing");
        }
        return scope.tensor(node.inputs().get(i));
    }

    @Nullable
    Value optional(int i) {
        return has(i) ? in(i) : null;
    }

    List<Value> allInputs() {
        List<Value> all = new ArrayList<>();
        for (int i = 0; i < inputs(); i++) {
            all.add(in(i));
        }
        return all;
    }

    List<Value> sequence(int i) {
        List<Value> values = has(i) ? scope.sequence(node.inputs().get(i)) : null;
        if (values == null) {
            throw new IngotException("input " + i + " is no sequence of known length");
        }
        return values;
    }

    /// The result of an operator whose output is a sequence.
    List<Value> isSequence(List<Value> values) {
        scope.define(node.outputs().getFirst(), values);
        return List.of();
    }

    /// The element type that the file declares for an operand; that of its value where it declares none.
    OnnxType type(int i) {
        OnnxType declared = scope.declared(node.inputs().get(i));
        DType dtype = in(i).dtype();
        return declared != null && declared.isSupported() && declared.dtype("input") == dtype
                ? declared
                : OnnxType.of(dtype);
    }

    int outputs() {
        return node.outputs().size();
    }

    boolean wants(int output) {
        return output < outputs() && !node.outputs().get(output).isEmpty();
    }

    // ---- what is known at import

    /// The value of an operand that shapes depend on.
    Tensor known(int i) {
        return importer.known(in(i), "input " + i + " (" + node.inputs().get(i) + ")");
    }

    @Nullable
    Tensor knownIfAny(int i) {
        return importer.knownIfAny(in(i));
    }

    /// Elements of an integer operand, known at import.
    List<Long> longs(int i) {
        Tensor tensor = known(i);
        List<Long> values = new ArrayList<>();
        for (long k = 0; k < tensor.shape().elements(); k++) {
            values.add(tensor.getLong(k));
        }
        return values;
    }

    List<Float> floats(int i) {
        Tensor tensor = known(i);
        List<Float> values = new ArrayList<>();
        for (long k = 0; k < tensor.shape().elements(); k++) {
            values.add(tensor.getFloat(k));
        }
        return values;
    }

    /// An integer list that is an attribute in old opsets and an operand in new ones; null where it is left out.
    @Nullable
    List<Long> attributeOrInput(String attribute, int input) {
        return has(input) ? longs(input) : node.attributes().containsKey(attribute) ? ints(attribute) : null;
    }

    /// The same, without negative axes.
    int @Nullable [] axes(String attribute, int input, int rank) {
        List<Long> axes = attributeOrInput(attribute, input);
        return axes == null
                ? null
                : axes.stream().mapToInt(a -> axis(a, rank)).sorted().toArray();
    }

    int axis(long axis, int rank) {
        if (axis < -rank || axis >= Math.max(rank, 1)) {
            throw new IngotException("axis " + axis + " is outside of " + rank + " axes");
        }
        return (int) (axis < 0 ? axis + rank : axis);
    }

    int axis(String attribute, int otherwise, int rank) {
        return axis(integer(attribute, otherwise), rank);
    }

    // ---- attributes

    boolean hasAttribute(String name) {
        return node.attributes().containsKey(name);
    }

    long integer(String name, long otherwise) {
        return switch (node.attributes().get(name)) {
            case null -> otherwise;
            case OnnxAttribute.OfInt x -> x.value();
            case OnnxAttribute x -> throw wrong(name, "an integer", x);
        };
    }

    boolean flag(String name) {
        return integer(name, 0) != 0;
    }

    double number(String name, double otherwise) {
        return switch (node.attributes().get(name)) {
            case null -> otherwise;
            case OnnxAttribute.OfFloat x -> x.value();
            case OnnxAttribute x -> throw wrong(name, "a number", x);
        };
    }

    String text(String name, String otherwise) {
        return switch (node.attributes().get(name)) {
            case null -> otherwise;
            case OnnxAttribute.OfString x -> x.value();
            case OnnxAttribute x -> throw wrong(name, "a string", x);
        };
    }

    /// Empty where it is left out.
    List<Long> ints(String name) {
        return switch (node.attributes().get(name)) {
            case null -> List.of();
            case OnnxAttribute.OfInts x -> x.values();
            case OnnxAttribute x -> throw wrong(name, "integers", x);
        };
    }

    /// `otherwise` repeated `count` times where the attribute is left out.
    List<Integer> ints(String name, int count, int otherwise) {
        List<Long> values = ints(name);
        if (values.isEmpty()) {
            return java.util.Collections.nCopies(count, otherwise);
        }
        if (values.size() != count) {
            throw new IngotException(name + " expected " + count + " numbers, got " + values);
        }
        return values.stream().map(Math::toIntExact).toList();
    }

    List<Float> numbers(String name) {
        return switch (node.attributes().get(name)) {
            case null -> List.of();
            case OnnxAttribute.OfFloats x -> x.values();
            case OnnxAttribute x -> throw wrong(name, "numbers", x);
        };
    }

    List<String> texts(String name) {
        return switch (node.attributes().get(name)) {
            case null -> List.of();
            case OnnxAttribute.OfStrings x -> x.values();
            case OnnxAttribute x -> throw wrong(name, "strings", x);
        };
    }

    OnnxGraph graph(String name) {
        return switch (node.attributes().get(name)) {
            case OnnxAttribute.OfGraph x -> x.value();
            case null -> throw new IngotException("attribute " + name + " is missing");
            case OnnxAttribute x -> throw wrong(name, "a graph", x);
        };
    }

    @Nullable
    OnnxTensor tensor(String name) {
        return switch (node.attributes().get(name)) {
            case null -> null;
            case OnnxAttribute.OfTensor x -> x.value();
            case OnnxAttribute x -> throw wrong(name, "a tensor", x);
        };
    }

    /// An attribute that names an element type.
    OnnxType elementType(String name, OnnxType otherwise) {
        return hasAttribute(name) ? OnnxType.of(integer(name, 0), "attribute " + name) : otherwise;
    }

    DType dtype(String name, OnnxType otherwise) {
        return elementType(name, otherwise).dtype("attribute " + name);
    }

    private static IngotException wrong(String name, String expected, OnnxAttribute found) {
        return new IngotException("attribute " + name + " expected " + expected + ", got "
                + found.getClass().getSimpleName());
    }

    // ---- values

    /// A scalar of the type of `like`.
    Value scalar(Value like, double value) {
        return b().scalarLike(like, value);
    }

    Value ints(long... values) {
        Tensor tensor = Tensor.zeros(new ingot.ir.Type(DType.I64, Shape.of(values.length)));
        for (int i = 0; i < values.length; i++) {
            tensor.setLong(i, values[i]);
        }
        return b().constant(tensor);
    }

    IngotException unsupported(String what) {
        return new IngotException(what + " is not supported");
    }
}
