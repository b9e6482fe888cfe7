package ingot.formats;

import ingot.data.Nearest;
import ingot.ir.IngotException;
import ingot.nn.Network;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/// One row per `model_type`: how its config.json becomes a model, and how its files spell names.
///
/// @param prefix before the names of the model's body in files of the model with a head
/// @param ignored names in files that no model here needs: heads of pretraining, buffers that can be computed
/// @param reader config.json and the names of all tensors → the model
record Architecture(String type, String prefix, Pattern ignored, Reader reader) {
    interface Reader {
        Network read(ModelConfig config, Set<String> tensors);
    }

    private static final String ROTARY = ".*rotary_emb\\.inv_freq";
    private static final String CROSS_BIAS = "decoder.*EncDecAttention\\.relative_attention_bias\\.weight";
    private static final String TRACKED = ".*num_batches_tracked";
    private static final String POSITIONS = ".*position_ids";

    /// All of them, in alphabetical order.
    static final List<Architecture> ALL = List.of(
            row("bert", "bert.", POSITIONS + "|cls\\..*", EncoderConfigs::bert),
            row("distilbert", "distilbert.", POSITIONS + "|vocab_.*", EncoderConfigs::distilbert),
            row("gemma", "model.", ROTARY + "|lm_head\\.weight", DecoderConfigs::gemma),
            row("gpt2", "transformer.", ".*\\.attn\\.(masked_)?bias|lm_head\\.weight", DecoderConfigs::gpt2),
            row("gpt_neox", "gpt_neox.", ROTARY + "|.*attention\\.(masked_)?bias", ParallelConfigs::neox),
            row("llama", "model.", ROTARY, DecoderConfigs::llama),
            row("lstm_classifier", "", "$.", TorchConfigs::lstm),
            row("mistral", "model.", ROTARY, DecoderConfigs::mistral),
            row("mixtral", "model.", ROTARY, DecoderConfigs::mixtral),
            row("phi", "model.", ROTARY, ParallelConfigs::phi),
            row("qwen2", "model.", ROTARY, DecoderConfigs::qwen2),
            row("qwen3", "model.", ROTARY, DecoderConfigs::qwen3),
            row("roberta", "roberta.", POSITIONS + "|lm_head\\..*", EncoderConfigs::roberta),
            row("small_resnet", "", TRACKED, TorchConfigs::resnet),
            row("t5", "", "(en|de)coder\\.embed_tokens\\.weight|" + CROSS_BIAS, EncoderConfigs::t5),
            row("torchvision_mobilenet_v2", "", TRACKED, TorchConfigs::mobilenet),
            row("vit", "vit.", "$.", EncoderConfigs::vit),
            row("xlm-roberta", "roberta.", POSITIONS + "|lm_head\\..*", EncoderConfigs::roberta));

    private static Architecture row(String type, String prefix, String ignored, Reader reader) {
        return new Architecture(type, prefix, Pattern.compile(ignored), reader);
    }

    static Architecture of(ModelConfig config) {
        String type = config.text("model_type");
        List<String> known = ALL.stream().map(Architecture::type).toList();
        return ALL.stream()
                .filter(row -> row.type().equals(type))
                .findFirst()
                .orElseThrow(() -> new IngotException(config.file() + ": model_type '" + type + "' is not known"
                        + Nearest.close(type, known)
                                .map(near -> "; did you mean " + near)
                                .orElse("")
                        + "; supported: " + String.join(", ", known)));
    }

    boolean ignores(String name) {
        return ignored.matcher(name).matches();
    }
}
