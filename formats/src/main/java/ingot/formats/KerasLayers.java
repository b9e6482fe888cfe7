package ingot.formats;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Activations;
import ingot.nn.Attention;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BinaryOperator;
import java.util.function.Function;
import java.util.stream.IntStream;
import tools.jackson.databind.JsonNode;

/// The layers of Keras by class: what each computes, and the weights that it has.
final class KerasLayers {
    private static final Map<String, Function<KerasCall, List<Value>>> TABLE = table();

    private KerasLayers() {}

    static boolean knows(String kind) {
        return TABLE.containsKey(kind);
    }

    /// The outputs of one call of a layer or of a model inside of the model.
    static List<Value> build(KerasCall c) {
        Function<KerasCall, List<Value>> meaning =
                c.layer().isModel() ? KerasGraph::call : TABLE.get(c.layer().kind());
        if (meaning == null) {
            throw new IngotException("keras: layer " + c.layer() + " is not supported");
        }
        try {
            return c.b().scope(c.layer().name(), () -> meaning.apply(c));
        } catch (IngotException e) {
            throw new IngotException("keras: layer " + c.layer() + ": " + plain(e), e);
        } catch (IllegalArgumentException | ArithmeticException | IndexOutOfBoundsException e) {
            throw new IngotException(
                    "keras: layer " + c.layer() + " does not fit its input "
                            + c.inputs().stream().map(Value::type).toList() + ": " + e.getMessage(),
                    e);
        }
    }

    private static String plain(IngotException e) {
        String message = String.valueOf(e.getMessage());
        return message.startsWith("keras: ") ? message.substring(7) : message;
    }

    private static Map<String, Function<KerasCall, List<Value>>> table() {
        Map<String, Function<KerasCall, List<Value>>> t = new HashMap<>();
        KerasWindows.addTo(t);
        KerasRecurrent.addTo(t);
        KerasNorms.addTo(t);
        t.put("InputLayer", KerasCall::inputs);
        one(t, "Dense", KerasLayers::dense);
        one(t, "Embedding", KerasLayers::embedding);
        one(t, "MultiHeadAttention", KerasLayers::attention);
        activations(t);
        dropouts(t);
        shapes(t);
        merges(t);
        return Map.copyOf(t);
    }

    static void one(Map<String, Function<KerasCall, List<Value>>> t, String kind, Function<KerasCall, Value> meaning) {
        t.put(kind, c -> List.of(meaning.apply(c)));
    }

    private static void activations(Map<String, Function<KerasCall, List<Value>>> t) {
        one(t, "Activation", c -> c.activated("activation", c.in()));
        one(t, "ReLU", KerasActivations::relu);
        one(t, "PReLU", KerasActivations::parametric);
        one(t, "LeakyReLU", c -> {
            String key = c.layer().has("negative_slope") ? "negative_slope" : "alpha";
            return KerasActivations.leaky(c.b(), c.in(), c.layer().number(key, 0.3));
        });
        one(t, "ELU", c -> OnnxMath.elu(c.b(), c.in(), c.layer().number("alpha", 1)));
        one(t, "ThresholdedReLU", c -> {
            Value edge = c.b().scalarLike(c.in(), c.layer().number("theta", 1));
            return c.b().select(c.b().compare(CompareKind.GREATER, c.in(), edge), c.in(), c.b().scalarLike(c.in(), 0));
        });
        one(t, "Softmax", c -> {
            List<Integer> axes = c.layer().has("axis") ? c.layer().integers("axis") : List.of(-1);
            KerasCall.refuse(axes.size() != 1, "softmax over several axes");
            return KerasActivations.softmax(c.b(), c.in(), axes.getFirst());
        });
    }

    private static void dropouts(Map<String, Function<KerasCall, List<Value>>> t) {
        one(t, "ActivityRegularization", KerasCall::in);
        one(t, "Dropout", c -> {
            double rate = c.layer().number("rate", 0);
            boolean drops = c.pass().random() != null && rate > 0;
            KerasCall.refuse(drops && c.layer().has("noise_shape"), "noise_shape in training");
            return Activations.dropout(
                    c.b(), c.in(), rate, c.pass().random(), c.pass().batch());
        });
        for (int n = 1; n <= 3; n++) {
            one(t, "SpatialDropout" + n + "D", KerasLayers::spatialDropout);
        }
        for (String kind : List.of("AlphaDropout", "GaussianDropout", "GaussianNoise")) {
            one(t, kind, c -> {
                KerasCall.refuse(c.pass().random() != null, "training with " + kind);
                return c.in();
            });
        }
    }

    /// Zeroes whole channels: one draw for each row and channel.
    private static Value spatialDropout(KerasCall c) {
        double rate = c.layer().number("rate", 0);
        if (c.pass().random() == null || rate == 0) {
            return c.in();
        }
        GraphBuilder b = c.b();
        Shape shape = c.in().shape();
        int channels = c.layer().text("data_format", "channels_last").equals("channels_first") ? 1 : shape.rank() - 1;
        Value ones = b.broadcast(b.constant(1f), Shape.of(shape.dim(0), shape.dim(channels)));
        Value kept =
                Activations.dropout(b, ones, rate, c.pass().random(), c.pass().batch());
        return b.multiply(c.in(), b.broadcast(kept, shape, List.of(0, channels)));
    }

    // ---- matrices

    private static Value dense(KerasCall c) {
        GraphBuilder b = c.b();
        Value x = c.in();
        int units = c.layer().integer("units");
        int last = x.shape().rank() - 1;
        Value kernel = c.weight(0, "kernel", x.shape().dim(last), units);
        KerasCall.refuse(c.layer().has("lora_rank"), "lora_rank (merge it before it is saved)");
        Value y = b.dot(x, kernel, List.of(), List.of(), List.of(last), List.of(0));
        if (c.layer().flag("use_bias", true)) {
            y = b.add(y, c.weight(1, "bias", units));
        }
        return c.activated("activation", y);
    }

    /// Rows of the table by index. With `mask_zero` later layers would leave out places with index 0, which is refused
    /// where there are such layers (`KerasGraph`).
    private static Value embedding(KerasCall c) {
        GraphBuilder b = c.b();
        Value ids = c.in().dtype() == DType.I32 ? c.in() : b.convert(c.in(), DType.I32);
        Value table = c.weight(
                0, "embeddings", c.layer().integer("input_dim"), c.layer().integer("output_dim"));
        return b.gather(table, ids, 0);
    }

    /// Inputs query, value and, where it is another, key, each [batch, time, width].
    private static Value attention(KerasCall c) {
        GraphBuilder b = c.b();
        KerasLayer layer = c.layer();
        JsonNode arguments = layer.node();
        KerasCall.refuse(layer.has("attention_axes"), "attention_axes");
        KerasCall.refuse(arguments.path("return_attention_scores").asBoolean(false), "return_attention_scores");
        int heads = layer.integer("num_heads");
        int width = layer.integer("key_dim");
        KerasCall.refuse(layer.integer("value_dim", width) != width, "value_dim other than key_dim");
        Value query = c.in();
        Value value = c.inputs().get(c.inputs().size() > 1 ? 1 : 0);
        Value key = c.inputs().size() > 2 ? c.inputs().get(2) : value;
        Value q = heads(c, "query", query, heads, width);
        Value k = heads(c, "key", key, heads, width);
        Value v = heads(c, "value", value, heads, width);
        Attention.Options options = new Attention.Options(
                arguments.path("use_causal_mask").asBoolean(false), 1 / Math.sqrt(width), layer.number("dropout", 0));
        Value mixed = Attention.attention(b, q, k, v, null, options, c.pass().random()); // [B, T, H, D]
        List<Integer> shape = layer.has("output_shape")
                ? layer.integers("output_shape")
                : List.of(query.shape().dim(2));
        KerasCall.refuse(shape.size() != 1, "output_shape of several numbers");
        KerasCall out = c.inner(layer, "attention_output", "output_dense", c.inputs());
        Value kernel = out.weight(0, "kernel", heads, width, shape.getFirst());
        Value y = b.dot(mixed, kernel, List.of(), List.of(), List.of(2, 3), List.of(0, 1));
        return layer.flag("use_bias", true) ? b.add(y, out.weight(1, "bias", shape.getFirst())) : y;
    }

    private static Value heads(KerasCall c, String name, Value x, int heads, int width) {
        if (x.shape().rank() != 3) {
            throw new IngotException(name + " has the shape " + x.shape() + ", expected [batch, time, width]");
        }
        KerasCall part = c.inner(c.layer(), name, name + "_dense", c.inputs());
        Value kernel = part.weight(0, "kernel", x.shape().dim(2), heads, width);
        Value y = c.b().dot(x, kernel, List.of(), List.of(), List.of(2), List.of(0));
        return c.layer().flag("use_bias", true) ? c.b().add(y, part.weight(1, "bias", heads, width)) : y;
    }

    // ---- shapes

    private static void shapes(Map<String, Function<KerasCall, List<Value>>> t) {
        one(t, "Flatten", c -> {
            Value x = c.in();
            int rank = x.shape().rank();
            if (rank > 2 && c.layer().text("data_format", "").equals("channels_first")) {
                x = c.b().transpose(
                                x,
                                IntStream.range(0, rank)
                                        .map(i -> i == 0 ? 0 : i == rank - 1 ? 1 : i + 1)
                                        .toArray());
            }
            int batch = x.shape().dim(0);
            return c.b().reshape(x, batch, Math.toIntExact(x.shape().elements() / batch));
        });
        one(t, "Reshape", c -> {
            List<Integer> target = c.layer().integers("target_shape");
            int batch = c.in().shape().dim(0);
            long known = target.stream().filter(n -> n != -1).mapToLong(n -> n).reduce(1, Math::multiplyExact);
            long each = c.in().shape().elements() / batch;
            int[] dims = IntStream.concat(
                            IntStream.of(batch),
                            target.stream().mapToInt(n -> n == -1 ? Math.toIntExact(each / Math.max(1, known)) : n))
                    .toArray();
            return c.b().reshape(c.in(), dims);
        });
        one(
                t,
                "Permute",
                c -> c.b().transpose(
                                c.in(),
                                IntStream.concat(
                                                IntStream.of(0),
                                                c.layer().integers("dims").stream()
                                                        .mapToInt(i -> i))
                                        .toArray()));
        one(t, "RepeatVector", c -> {
            int n = c.layer().integer("n");
            Value row = c.b().reshape(
                            c.in(), c.in().shape().dim(0), 1, c.in().shape().dim(1));
            return KerasWindows.repeated(c.b(), row, 1, n);
        });
        one(t, "Rescaling", c -> {
            GraphBuilder b = c.b();
            Value scaled = b.multiply(floating(c), numbers(c, "scale", 1));
            return b.add(scaled, numbers(c, "offset", 0));
        });
    }

    static Value floating(KerasCall c) {
        return c.in().dtype() == DType.F32 ? c.in() : c.b().convert(c.in(), DType.F32);
    }

    /// One number, or one for each channel.
    static Value numbers(KerasCall c, String key, double otherwise) {
        JsonNode value = c.layer().config().path(key);
        if (!value.isArray()) {
            return c.b().constant((float) c.layer().number(key, otherwise));
        }
        List<Float> numbers = new ArrayList<>();
        flat(value, numbers);
        float[] all = new float[numbers.size()];
        for (int i = 0; i < all.length; i++) {
            all[i] = numbers.get(i);
        }
        return c.b().constant(Tensor.of(Shape.of(all.length), all));
    }

    private static void flat(JsonNode value, List<Float> numbers) {
        if (value.isArray()) {
            value.forEach(each -> flat(each, numbers));
        } else if (value.isNumber()) {
            numbers.add((float) value.asDouble());
        } else {
            throw new IngotException(KerasLayer.brief(value) + " is not a number");
        }
    }

    // ---- several inputs

    private static void merges(Map<String, Function<KerasCall, List<Value>>> t) {
        fold(t, "Add", GraphBuilder::add);
        fold(t, "Subtract", GraphBuilder::subtract);
        fold(t, "Multiply", GraphBuilder::multiply);
        fold(t, "Maximum", GraphBuilder::max);
        fold(t, "Minimum", GraphBuilder::min);
        one(
                t,
                "Average",
                c -> c.b().multiply(
                                folded(c, (x, y) -> c.b().add(x, y)),
                                1.0 / c.inputs().size()));
        one(
                t,
                "Concatenate",
                c -> c.b().concatenate(
                                c.inputs(), GraphBuilder.axis(c.in(), c.layer().integer("axis", -1))));
        one(t, "Dot", KerasLayers::dot);
    }

    /// An operation of two values.
    private interface Pair {
        Value of(GraphBuilder b, Value x, Value y);
    }

    private static void fold(Map<String, Function<KerasCall, List<Value>>> t, String kind, Pair pair) {
        one(t, kind, c -> folded(c, (x, y) -> pair.of(c.b(), x, y)));
    }

    private static Value folded(KerasCall c, BinaryOperator<Value> pair) {
        return c.inputs().stream().reduce(pair).orElseThrow();
    }

    /// Σ over one axis of each of two inputs, for each row of the batch.
    private static Value dot(KerasCall c) {
        GraphBuilder b = c.b();
        if (c.inputs().size() != 2) {
            throw new IngotException("Dot of " + c.inputs().size() + " inputs, expected 2");
        }
        List<Integer> axes = c.layer().integers("axes", 2, -1);
        Value x = c.in();
        Value y = c.inputs().get(1);
        int ofX = GraphBuilder.axis(x, axes.get(0));
        int ofY = GraphBuilder.axis(y, axes.get(1));
        if (c.layer().flag("normalize", false)) {
            x = unit(b, x, ofX);
            y = unit(b, y, ofY);
        }
        Value result = b.dot(x, y, List.of(0), List.of(0), List.of(ofX), List.of(ofY));
        return result.shape().rank() == 1 ? b.reshape(result, result.shape().dim(0), 1) : result;
    }

    private static Value unit(GraphBuilder b, Value x, int axis) {
        Value squares = b.reduceKeep(ReduceKind.SUM, b.multiply(x, x), axis);
        return b.divide(x, b.sqrt(b.max(squares, b.scalarLike(squares, 1e-12))));
    }

    static Value filled(GraphBuilder b, int size, float value) {
        float[] all = new float[size];
        Arrays.fill(all, value);
        return b.constant(Tensor.of(Shape.of(size), all));
    }

    static Type input(KerasLayer layer, Shape shape) {
        String dtype = layer.text("dtype", "float32");
        return switch (dtype) {
            case "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32" -> new Type(DType.I32, shape);
            case "string", "complex64", "complex128" ->
                throw new IngotException("keras: input " + layer.name() + " is " + dtype + "; expected numbers");
            default -> new Type(DType.F32, shape);
        };
    }
}
