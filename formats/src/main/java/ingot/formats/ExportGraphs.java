package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Head;
import ingot.nn.ImageClassifier;
import ingot.nn.LanguageModel;
import ingot.nn.LstmClassifier;
import ingot.nn.Network;
import ingot.nn.T5;
import ingot.nn.TextEncoder;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.BiConsumer;

/// The graphs of models under the names that ONNX exports of Hugging Face models have.
///
/// Ids and masks are I64 [batch, sequence]: `input_ids`, `attention_mask` (0: padding), `token_type_ids`; pixels F32
/// are `pixel_values`. Outputs are `logits`, or `last_hidden_state` and `pooler_output` of a model without a head.
public final class ExportGraphs {
    private static final String BATCH = "batch";
    private static final String SEQUENCE = "sequence";
    private static final int MOST_ROWS = 1 << 10;
    private static final int MOST_STEPS = 1 << 6; // of a graph with nodes for every step

    private ExportGraphs() {}

    public static SizedGraph of(Network model) {
        return switch (model) {
            case LanguageModel language ->
                sized(language.context(), (b, shape) -> {
                    Value tokens = ids(b, "input_ids", shape);
                    b.output("logits", language.logits(b, tokens, mask(b, shape)));
                });
            case TextEncoder encoder -> sized(encoder.context(), (b, shape) -> encoded(encoder, b, shape));
            case ImageClassifier images -> images(images);
            case T5 t5 -> t5(t5);
            case LstmClassifier lstm ->
                sized(MOST_STEPS, (b, shape) -> {
                    Value tokens = ids(b, "input_ids", shape);
                    Graph graph = lstm.logitsGraph(shape.dim(0), shape.dim(1));
                    b.output("logits", inlined(b, graph, tokens));
                });
            default ->
                throw new IngotException(
                        "export: there is no ONNX form of a " + model.getClass().getSimpleName());
        };
    }

    private static SizedGraph sized(int context, BiConsumer<GraphBuilder, Shape> body) {
        SequencedMap<String, Integer> most = new LinkedHashMap<>();
        most.put(BATCH, MOST_ROWS);
        most.put(SEQUENCE, context);
        return new SizedGraph(most, sizes -> {
            GraphBuilder b = new GraphBuilder("model");
            body.accept(b, Shape.of(size(sizes, BATCH), size(sizes, SEQUENCE)));
            return b.build();
        });
    }

    private static int size(Map<String, Integer> sizes, String name) {
        Integer size = sizes.get(name);
        if (size == null) {
            throw new IllegalArgumentException("size " + name + " is missing; given: " + sizes);
        }
        return size;
    }

    private static Value ids(GraphBuilder b, String name, Shape shape) {
        return b.convert(b.input(name, new Type(DType.I64, shape)), DType.I32);
    }

    private static Value mask(GraphBuilder b, Shape shape) {
        Value mask = b.input("attention_mask", new Type(DType.I64, shape));
        return b.compare(Op.CompareKind.NOT_EQUAL, mask, b.scalarLike(mask, 0));
    }

    private static void encoded(TextEncoder encoder, GraphBuilder b, Shape shape) {
        Value tokens = ids(b, "input_ids", shape);
        Value mask = mask(b, shape);
        Value types = encoder.tokenTypes() > 1 ? ids(b, "token_type_ids", shape) : null;
        TextEncoder.Text text = new TextEncoder.Text(tokens, mask, types, null);
        Value hidden = encoder.hidden(b, text);
        if (encoder.head().kind() == Head.Kind.NONE) {
            b.output("last_hidden_state", hidden);
            b.output("pooler_output", encoder.pooled(b, hidden));
        } else {
            b.output("logits", encoder.logits(b, hidden, text));
        }
    }

    private static SizedGraph images(ImageClassifier images) {
        SequencedMap<String, Integer> most = new LinkedHashMap<>();
        most.put(BATCH, MOST_ROWS);
        return new SizedGraph(most, sizes -> {
            GraphBuilder b = new GraphBuilder("model");
            int side = images.imageSize();
            Value pixels = b.input("pixel_values", Type.f32(size(sizes, BATCH), images.channels(), side, side));
            b.output("logits", images.logits(b, pixels));
            return b.build();
        });
    }

    private static SizedGraph t5(T5 t5) {
        SequencedMap<String, Integer> most = new LinkedHashMap<>();
        most.put(BATCH, MOST_ROWS);
        most.put(SEQUENCE, MOST_ROWS);
        most.put("decoder_" + SEQUENCE, MOST_ROWS);
        return new SizedGraph(most, sizes -> {
            GraphBuilder b = new GraphBuilder("model");
            int batch = size(sizes, BATCH);
            Shape source = Shape.of(batch, size(sizes, SEQUENCE));
            Value tokens = ids(b, "input_ids", source);
            Value mask = mask(b, source);
            Value before = ids(b, "decoder_input_ids", Shape.of(batch, size(sizes, "decoder_" + SEQUENCE)));
            b.output("logits", t5.logits(b, t5.encoded(b, tokens, mask, null), mask, before, null));
            return b.build();
        });
    }

    /// The first output of a graph of one input.
    private static Value inlined(GraphBuilder b, Graph graph, Value input) {
        return b.inline(graph, java.util.List.of(input)).getFirst();
    }
}
