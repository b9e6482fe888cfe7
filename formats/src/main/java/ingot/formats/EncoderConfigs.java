package ingot.formats;

import ingot.ir.IngotException;
import ingot.nn.Activation;
import ingot.nn.Bert;
import ingot.nn.BertConfig;
import ingot.nn.BertConfig.Layout;
import ingot.nn.Head;
import ingot.nn.T5;
import ingot.nn.T5Config;
import ingot.nn.Vit;
import ingot.nn.VitConfig;
import java.util.List;
import java.util.Set;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/// config.json of models that read a text or an image as a whole.
final class EncoderConfigs {
    private EncoderConfigs() {}

    static Bert bert(ModelConfig c, Set<String> tensors) {
        return bert(c, tensors, Layout.BERT, -1);
    }

    /// Positions count from the one after that of padding.
    static Bert roberta(ModelConfig c, Set<String> tensors) {
        return bert(c, tensors, Layout.ROBERTA, c.has("pad_token_id") ? c.whole("pad_token_id", 0, 1 << 24) : 1);
    }

    private static Bert bert(ModelConfig c, Set<String> tensors, Layout layout, int padding) {
        if (!c.text("position_embedding_type", "absolute").equals("absolute")) {
            throw c.unsupported("position_embedding_type", "absolute");
        }
        if (c.flag("is_decoder", false)) {
            throw c.unsupported("is_decoder", "false");
        }
        Head head = head(c);
        boolean pools = head.kind() == Head.Kind.CLASS || head.kind() == Head.Kind.NUMBERS;
        boolean stored = tensors.stream().anyMatch(name -> name.endsWith("pooler.dense.weight"));
        double dropout = c.number("hidden_dropout_prob", 0.1);
        return new Bert(new BertConfig(
                layout,
                c.size("vocab_size"),
                c.size("max_position_embeddings"),
                c.size("hidden_size"),
                Sizes.layers(c, "num_hidden_layers", tensors),
                c.size("num_attention_heads"),
                c.size("intermediate_size"),
                c.size("type_vocab_size", 2),
                padding,
                c.number("layer_norm_eps", 1e-12),
                Sizes.activation(c, "hidden_act", "gelu"),
                dropout,
                c.number("attention_probs_dropout_prob", 0.1),
                c.number("classifier_dropout", dropout),
                (layout == Layout.BERT && pools) || (head.kind() == Head.Kind.NONE && stored),
                head,
                c.number("initializer_range", 0.02)));
    }

    static Bert distilbert(ModelConfig c, Set<String> tensors) {
        return new Bert(new BertConfig(
                Layout.DISTILBERT,
                c.size("vocab_size"),
                c.size("max_position_embeddings"),
                c.size("dim"),
                Sizes.layers(c, "n_layers", tensors),
                c.size("n_heads"),
                c.size("hidden_dim"),
                0,
                -1,
                1e-12, // fixed in this architecture
                Sizes.activation(c, "activation", "gelu"),
                c.number("dropout", 0.1),
                c.number("attention_dropout", 0.1),
                c.number("seq_classif_dropout", 0.2),
                false,
                head(c),
                c.number("initializer_range", 0.02)));
    }

    static Vit vit(ModelConfig c, Set<String> tensors) {
        boolean classifies =
                c.texts("architectures").stream().findFirst().orElse("").endsWith("ForImageClassification");
        return new Vit(new VitConfig(
                c.size("image_size", 224),
                c.size("patch_size", 16),
                c.size("num_channels", 3),
                c.size("hidden_size"),
                Sizes.layers(c, "num_hidden_layers", tensors),
                c.size("num_attention_heads"),
                c.size("intermediate_size"),
                classifies ? labels(c) : 0,
                c.number("layer_norm_eps", 1e-12),
                Sizes.activation(c, "hidden_act", "gelu"),
                c.flag("qkv_bias", true),
                !classifies && tensors.stream().anyMatch(name -> name.endsWith("pooler.dense.weight")),
                c.number("hidden_dropout_prob", 0),
                c.number("attention_probs_dropout_prob", 0),
                c.number("initializer_range", 0.02)));
    }

    static T5 t5(ModelConfig c, Set<String> tensors) {
        String projection = c.text("feed_forward_proj", "relu");
        Activation activation = switch (projection) {
            case "relu", "gated-relu" -> Activation.RELU;
            case "gated-gelu" -> Activation.GELU_TANH; // as the library has it
            case "gelu" -> Activation.GELU;
            case "gated-silu", "silu" -> Activation.SILU;
            default -> throw c.unsupported("feed_forward_proj", "relu, gelu, silu, gated-relu, gated-gelu, gated-silu");
        };
        int layers = Sizes.layers(c, "num_layers", tensors);
        return new T5(new T5Config(
                c.size("vocab_size"),
                c.size("d_model"),
                c.size("d_kv"),
                c.size("d_ff"),
                layers,
                c.has("num_decoder_layers") ? Sizes.layers(c, "num_decoder_layers", tensors) : layers,
                c.size("num_heads"),
                c.size("relative_attention_num_buckets", 32),
                c.size("relative_attention_max_distance", 128),
                c.number("layer_norm_epsilon", 1e-6),
                activation,
                projection.startsWith("gated-"),
                c.flag("tie_word_embeddings", true),
                c.has("decoder_start_token_id") ? c.whole("decoder_start_token_id", 0, 1 << 24) : 0,
                c.number("dropout_rate", 0.1),
                0.05));
    }

    /// By the class that wrote the file; other classes are read without their heads.
    private static Head head(ModelConfig c) {
        String written = c.texts("architectures").stream().findFirst().orElse("");
        if (written.endsWith("ForSequenceClassification")) {
            boolean numbers = c.text("problem_type", "").equals("regression");
            return Head.of(numbers ? Head.Kind.NUMBERS : Head.Kind.CLASS, labels(c));
        }
        return written.endsWith("ForTokenClassification") ? Head.of(Head.Kind.TOKEN_CLASS, labels(c)) : Head.NONE;
    }

    /// Says in a config.json which head the model has; the reverse of `head`.
    static void write(ObjectNode json, String type, Head head, List<String> labels) {
        String family = switch (type) {
            case "bert" -> "Bert";
            case "distilbert" -> "DistilBert";
            case "roberta" -> "Roberta";
            case "xlm-roberta" -> "XLMRoberta";
            default -> throw new IngotException("config.json: a " + type + " has no head that can be described");
        };
        String suffix = switch (head.kind()) {
            case NONE -> "Model";
            case CLASS, NUMBERS -> "ForSequenceClassification";
            case TOKEN_CLASS -> "ForTokenClassification";
        };
        json.putArray("architectures").add(family + suffix);
        json.remove(List.of("id2label", "label2id", "num_labels", "problem_type"));
        if (head.kind() == Head.Kind.NONE) {
            return;
        }
        if (head.kind() != Head.Kind.TOKEN_CLASS) {
            json.put("problem_type", head.kind() == Head.Kind.NUMBERS ? "regression" : "single_label_classification");
        }
        ObjectNode names = json.putObject("id2label");
        ObjectNode numbers = json.putObject("label2id");
        for (int i = 0; i < head.labels(); i++) {
            String name = i < labels.size() ? labels.get(i) : "LABEL_" + i;
            names.put(Integer.toString(i), name);
            numbers.put(name, i);
        }
    }

    /// The number of labels is that of their names; 2 if nothing is said.
    static int labels(ModelConfig c) {
        ModelConfig names = c.section("id2label");
        if (names == null) {
            return c.size("num_labels", 2);
        }
        for (int i = 0; i < names.json().size(); i++) {
            JsonNode name = names.json().path(Integer.toString(i));
            if (!name.isString()) {
                throw names.wrong(Integer.toString(i), "the name of a label, one for each number from 0");
            }
        }
        if (names.json().isEmpty()) {
            throw c.wrong("id2label", "at least one label");
        }
        return names.json().size();
    }
}
