package ingot.train;

import static ingot.train.ConfigText.require;

import ingot.data.Mail;
import ingot.data.Table;
import ingot.ir.IngotException;
import ingot.nn.Lora;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.node.ObjectNode;

/// Everything that defines a run which goes on from a model that exists: the model, the examples, and how it learns.
///
/// @param run folder of the run
/// @param threads threads of the backend; 0 means one per core. Never changes a bit.
/// @param memory what the process may use, such as `1GiB`: the state is on disk and streams through it. Empty: all in
/// memory if it fits. Never changes a bit.
/// @param length tokens that an example has at most, and is filled up to; 0: so that 95 % of the training examples fit
/// @param lora low-rank terms that learn instead of the matrices they stand beside; null: the weights themselves learn
public record FineTuneConfig(
        String run,
        int threads,
        String memory,
        Goal task,
        int length,
        ModelConfig model,
        ExamplesConfig data,
        Lora.@Nullable Settings lora,
        RunConfig.TrainConfig train)
        implements RunSettings {

    /// What the model learns to do.
    public enum Goal {
        /// One class for a text, or for a pair of texts.
        TEXT_CLASSIFICATION,
        /// A number for a text, or for a pair of texts.
        REGRESSION,
        /// One class for each word.
        TOKEN_CLASSIFICATION,
        /// To go on with a text, or to answer: only answers count.
        LANGUAGE_MODEL,
        /// Vectors: a text is near the text that belongs to it, and far from the others of its batch.
        EMBEDDING
    }

    /// Where the weights begin.
    public enum Weights {
        /// As the model has them.
        PRETRAINED,
        /// At random: the same model from scratch, to compare with.
        RANDOM
    }

    /// What stands for the whole text before the head, where a model has no pooler of its own.
    public enum Pooling {
        /// What the model was made with: its pooler, else the mean.
        MODEL,
        /// The mean over the tokens.
        MEAN,
        /// The first token.
        FIRST
    }

    /// What a text is.
    public enum Content {
        /// Read as it is.
        TEXT,
        /// An e-mail: sender, subject and what a person reads of it.
        MAIL;

        /// The text that the model sees.
        String of(String raw) {
            return switch (this) {
                case TEXT -> raw;
                case MAIL -> Mail.read(raw);
            };
        }
    }

    public enum ClassWeights {
        /// Every example counts the same.
        NONE,
        /// Every class counts the same: an example by examples / (classes · examples of its class).
        BALANCED
    }

    /// @param from a Hugging Face folder or an ONNX file; or one in a package, `maven:group:artifact:version!/file` or
    /// `npm:name@version!/file`
    /// @param tokenizer its tokenizer.json, in the same places; empty: the one beside the model
    /// @param dropout before the head of an ONNX model, whose own dropout is gone
    public record ModelConfig(String from, String tokenizer, Weights weights, Pooling pooling, double dropout) {
        public ModelConfig {
            require(
                    !from.isBlank(),
                    "model.from expected a Hugging Face folder, an ONNX file, maven:…!/file or npm:…!/file, got"
                            + " nothing");
            require(dropout >= 0 && dropout < 1, "model.dropout expected 0 to below 1, got " + dropout);
        }
    }

    /// Examples: CSV with a header, a JSON object per line, or a file per example.
    ///
    /// @param source a file, a folder, `maven:…` or `npm:…`
    /// @param include globs of files
    /// @param heldOut the fraction of every class that training never sees, where there is no `evaluation`
    /// @param evaluation another source with what is held out; empty: a part of `source`
    /// @param labels the labels in order; for files each with globs. Empty: those that are found, in order of the
    /// alphabet
    /// @param text column of the text
    /// @param second column of the second text of a pair; empty: there is none
    /// @param label column of what is expected
    public record ExamplesConfig(
            String source,
            List<String> include,
            Table.Format format,
            double heldOut,
            String evaluation,
            SequencedMap<String, List<String>> labels,
            Content content,
            String text,
            String second,
            String label,
            ClassWeights classWeights) {
        public ExamplesConfig {
            include = List.copyOf(include);
            labels = new LinkedHashMap<>(labels);
            require(!source.isBlank(), "data.source expected a file, a folder, maven:… or npm:…, got nothing");
            require(heldOut > 0 && heldOut < 1, "data.held-out expected between 0 and 1, got " + heldOut);
            require(!text.isBlank(), "data.text expected the name of a column, got nothing");
            require(!label.isBlank(), "data.label expected the name of a column, got nothing");
            long globbed =
                    labels.values().stream().filter(globs -> !globs.isEmpty()).count();
            require(
                    globbed == 0 || globbed == labels.size(),
                    "data.labels expected patterns of files for every label or for none");
        }
    }

    public FineTuneConfig {
        ConfigText.requireRun(run, threads, memory);
        require(length >= 0, "length expected 0 (what most examples need) or more, got " + length);
    }

    /// Reads YAML text; each override is `key.path=value` and wins over the text.
    public static FineTuneConfig parse(String yaml, List<String> overrides) {
        Section root = ConfigText.root(yaml, overrides);
        if (!root.has("task")) {
            throw new IngotException("configuration: task is missing, one of "
                    + String.join(
                            ", ",
                            List.of(Goal.values()).stream().map(Section::kebab).toList())
                    + "; a language model is trained from scratch by ingot train");
        }
        Goal task = root.choice("task", Goal.TEXT_CLASSIFICATION);
        String run = root.text("run", "runs/default");
        int threads = root.integer("threads", 0);
        String memory = root.text("memory", "");
        int length = root.integer("length", 0);

        Section m = root.section("model");
        ModelConfig model = new ModelConfig(
                m.text("from", ""),
                m.text("tokenizer", ""),
                m.choice("weights", Weights.PRETRAINED),
                m.choice("pooling", Pooling.MODEL),
                m.real("dropout", 0.1));
        m.end();

        Section d = root.section("data");
        ExamplesConfig data = new ExamplesConfig(
                d.text("source", ""),
                d.texts("include", List.of()),
                d.choice("format", Table.Format.AUTO),
                d.real("held-out", 0.1),
                d.text("evaluation", ""),
                d.named("labels"),
                d.choice("content", Content.TEXT),
                d.text("text", task == Goal.TOKEN_CLASSIFICATION ? "tokens" : Table.TEXT),
                d.text("second", ""),
                d.text("label", task == Goal.TOKEN_CLASSIFICATION ? "tags" : Table.LABEL),
                d.choice("class-weights", ClassWeights.NONE));
        d.end();

        Lora.Settings lora = root.has("lora") ? lora(root.section("lora")) : null;
        RunConfig.TrainConfig train =
                RunConfig.TrainConfig.read(root.section("train"), RunConfig.TrainConfig.Defaults.FINE_TUNING);
        root.end();
        return new FineTuneConfig(run, threads, memory, task, length, model, data, lora, train);
    }

    private static Lora.Settings lora(Section l) {
        int rank = l.integer("rank", 8);
        Lora.Settings lora = new Lora.Settings(
                rank, l.real("alpha", 2.0 * rank), l.real("dropout", 0), l.texts("targets", List.of("query", "value")));
        l.end();
        return lora;
    }

    @Override
    public String toYaml() {
        ObjectNode root = ConfigText.mapping();
        root.put("task", Section.kebab(task));
        root.put("run", run);
        root.put("threads", threads);
        root.put("memory", memory);
        root.put("length", length);
        ObjectNode m = root.putObject("model");
        m.put("from", model.from());
        m.put("tokenizer", model.tokenizer());
        m.put("weights", Section.kebab(model.weights()));
        m.put("pooling", Section.kebab(model.pooling()));
        m.put("dropout", model.dropout());
        ObjectNode d = root.putObject("data");
        d.put("source", data.source());
        data.include().forEach(d.putArray("include")::add);
        d.put("format", Section.kebab(data.format()));
        d.put("held-out", data.heldOut());
        d.put("evaluation", data.evaluation());
        ObjectNode labels = d.putObject("labels");
        data.labels().forEach((label, globs) -> globs.forEach(labels.putArray(label)::add));
        d.put("content", Section.kebab(data.content()));
        d.put("text", data.text());
        d.put("second", data.second());
        d.put("label", data.label());
        d.put("class-weights", Section.kebab(data.classWeights()));
        if (lora != null) {
            ObjectNode l = root.putObject("lora");
            l.put("rank", lora.rank());
            l.put("alpha", lora.alpha());
            l.put("dropout", lora.dropout());
            lora.targets().forEach(l.putArray("targets")::add);
        }
        train.write(root.putObject("train"));
        return ConfigText.write(root);
    }

    @Override
    public SequencedMap<String, String> identity() {
        SequencedMap<String, String> values = ConfigText.identity(toYaml());
        values.remove("model.from"); // the weights and the tokenizer decide, not their place
        values.remove("model.tokenizer");
        return values;
    }
}
