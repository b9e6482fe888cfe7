package ingot.train;

import ingot.ir.IngotException;
import ingot.nn.Activation;
import ingot.nn.GptConfig;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.stream.Collectors;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;
import tools.jackson.dataformat.yaml.YAMLMapper;

/// Everything that defines a run: one record behind the YAML file, the Keras-like face and the Estimator.
///
/// @param run folder of the run
/// @param threads threads of the backend; 0 means one per core. Never changes a bit.
/// @param memory what the process may use, such as `1GiB`: the state is on disk and streams through it. Empty: all in
/// memory if it fits. Never changes a bit.
public record RunConfig(
        String run,
        int threads,
        String memory,
        ModelConfig model,
        DataConfig data,
        TokenizerConfig tokenizer,
        TrainConfig train) {
    private static final YAMLMapper YAML = YAMLMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
            .build();

    /// Keys that never change a bit.
    private static final Set<String> FREE = Set.of(
            "run",
            "threads",
            "memory",
            "model.base",
            "train.micro-batch",
            "train.recompute",
            "train.evaluate-every",
            "train.checkpoint-every",
            "train.log-every");

    public RunConfig {
        require(!run.isBlank(), "run expected a folder, got nothing");
        require(threads >= 0, "threads expected 0 (all cores) or more, got " + threads);
        if (!memory.isEmpty()) {
            MemoryBudget.parse(memory);
        }
    }

    /// A GPT-2 shaped language model. `context` is the sequence length of training. `base` is a safetensors file, or a
    /// folder with one or with shards, that has the first values of all weights; empty: `train.seed` decides them.
    public record ModelConfig(
            int layers, int width, int heads, int context, double dropout, Activation activation, String base) {
        public ModelConfig {
            require(layers >= 1, "model.layers expected at least 1, got " + layers);
            require(width >= 1, "model.width expected at least 1, got " + width);
            require(heads >= 1, "model.heads expected at least 1, got " + heads);
            require(
                    width % heads == 0,
                    "model.width " + width + " is not a multiple of model.heads " + heads
                            + "; every head needs the same width");
            require(context >= 1, "model.context expected at least 1, got " + context);
            require(dropout >= 0 && dropout < 1, "model.dropout expected 0 to below 1, got " + dropout);
        }

        public GptConfig gpt(int vocabulary) {
            GptConfig sizes =
                    GptConfig.of(vocabulary, context, width, layers, heads).withDropout(dropout);
            return new GptConfig(
                    sizes.vocabulary(),
                    sizes.context(),
                    sizes.width(),
                    sizes.layers(),
                    sizes.heads(),
                    sizes.inner(),
                    sizes.embeddingDropout(),
                    sizes.attentionDropout(),
                    sizes.residualDropout(),
                    sizes.epsilon(),
                    activation,
                    sizes.deviation());
        }
    }

    /// Where the text comes from: a file, a folder, `maven:…` or `npm:…`; `include` are globs; `heldOut` is the
    /// fraction of files that training never sees.
    public record DataConfig(String corpus, List<String> include, double heldOut) {
        public DataConfig {
            include = List.copyOf(include);
            require(!corpus.isBlank(), "data.corpus expected a file, a folder, maven:… or npm:…, got nothing");
            require(heldOut > 0 && heldOut < 1, "data.held-out expected between 0 and 1, got " + heldOut);
        }
    }

    /// Byte pairs to train, or an existing tokenizer.json (`file`, empty for none).
    public record TokenizerConfig(int vocabulary, String file) {
        public TokenizerConfig {
            require(
                    vocabulary >= 257,
                    "tokenizer.vocabulary expected at least 257 (256 bytes and the end of text), got " + vocabulary);
        }
    }

    public enum Rule {
        ADAMW,
        ADAM,
        SGD,
        LION
    }

    public enum Curve {
        COSINE,
        LINEAR,
        CONSTANT
    }

    /// How it is trained.
    ///
    /// `batch` sequences make a step, in shards of `shard` sequences: these two decide the bits. `microBatch` sequences are computed at a time
    /// (0: the whole batch): less memory, the same bits. `clip` 0: no clipping. Exactly one of `steps` and `epochs` is
    /// positive. Weights whose names fit the patterns of `freeze` keep their first values, see `Start`.
    public record TrainConfig(
            long steps,
            double epochs,
            int batch,
            int microBatch,
            int shard,
            long seed,
            Rule optimizer,
            double learningRate,
            Curve schedule,
            long warmup,
            double floor,
            double weightDecay,
            double beta1,
            double beta2,
            double epsilon,
            double momentum,
            double clip,
            List<String> freeze,
            boolean recompute,
            long evaluateEvery,
            long checkpointEvery,
            long logEvery) {
        public TrainConfig {
            freeze = List.copyOf(freeze);
            for (String pattern : freeze) {
                require(
                        !pattern.isBlank() && !pattern.equals("!"),
                        "train.freeze expected patterns of weights such as h.*, got '" + pattern + "'");
            }
            require(
                    steps >= 0 && epochs >= 0 && (steps > 0) != (epochs > 0),
                    "train expected either steps or epochs to be positive, got steps " + steps + " and epochs "
                            + epochs);
            require(batch >= 1, "train.batch expected at least 1, got " + batch);
            require(
                    shard >= 1 && batch % shard == 0,
                    "train.shard expected a divisor of train.batch " + batch + ", got " + shard);
            require(
                    microBatch == 0
                            || microBatch == batch
                            || (microBatch > 0
                                    && microBatch < batch
                                    && microBatch % shard == 0
                                    && Integer.bitCount(microBatch / shard) == 1),
                    "train.micro-batch expected 0 (the whole batch), or train.shard (" + shard
                            + ") times a power of two below train.batch (" + batch + "), got " + microBatch);
            require(
                    learningRate > 0 && Double.isFinite(learningRate),
                    "train.learning-rate expected above 0, got " + learningRate);
            require(warmup >= 0, "train.warmup expected at least 0, got " + warmup);
            require(
                    floor >= 0 && floor <= learningRate,
                    "train.floor expected 0 to train.learning-rate " + learningRate + ", got " + floor);
            require(weightDecay >= 0, "train.weight-decay expected at least 0, got " + weightDecay);
            require(beta1 >= 0 && beta1 < 1, "train.beta1 expected 0 to below 1, got " + beta1);
            require(beta2 >= 0 && beta2 < 1, "train.beta2 expected 0 to below 1, got " + beta2);
            require(epsilon > 0, "train.epsilon expected above 0, got " + epsilon);
            require(momentum >= 0 && momentum < 1, "train.momentum expected 0 to below 1, got " + momentum);
            require(clip >= 0, "train.clip expected at least 0 (0: none), got " + clip);
            require(
                    evaluateEvery >= 0,
                    "train.evaluate-every expected at least 0 (0: only at the end), got " + evaluateEvery);
            require(
                    checkpointEvery >= 0,
                    "train.checkpoint-every expected at least 0 (0: only at the end), got " + checkpointEvery);
            require(logEvery >= 1, "train.log-every expected at least 1, got " + logEvery);
        }

        public Optimizer rule() {
            return switch (optimizer) {
                case ADAMW -> new Optimizer.AdamW(beta1, beta2, epsilon, weightDecay);
                case ADAM -> new Optimizer.Adam(beta1, beta2, epsilon, weightDecay);
                case SGD -> new Optimizer.Sgd(momentum, weightDecay);
                case LION -> new Optimizer.Lion(beta1, beta2, weightDecay);
            };
        }

        /// The settings of a run of `total` steps.
        public Recipe recipe(long total) {
            return new Recipe(rule(), rate(total), batch, microBatch, shard, seed, clip, recompute);
        }

        /// The learning rate of a run of `total` steps.
        public Schedule rate(long total) {
            if (warmup > total) {
                throw new IngotException("configuration: train.warmup expected at most the " + total
                        + " steps of the run, got " + warmup);
            }
            return switch (schedule) {
                case COSINE -> Schedule.cosine(learningRate, warmup, total, floor);
                case LINEAR -> Schedule.linear(learningRate, warmup, total, floor);
                case CONSTANT -> Schedule.constant(learningRate, warmup);
            };
        }
    }

    /// Reads YAML text; each override is `key.path=value` and wins over the text.
    public static RunConfig parse(String yaml, List<String> overrides) {
        JsonNode root;
        try {
            root = YAML.readTree(yaml);
        } catch (JacksonException e) {
            throw new IngotException(
                    "configuration: no YAML, line " + e.getLocation().getLineNr() + ": " + oneLine(e), e);
        }
        if (root == null || root.isNull() || root.isMissingNode()) {
            root = YAML.createObjectNode();
        }
        for (String override : overrides) {
            if (!(root instanceof ObjectNode object)) {
                break;
            }
            override(object, override);
        }
        return read(new Section("", root));
    }

    private static void override(ObjectNode root, String text) {
        int equals = text.indexOf('=');
        if (equals <= 0) {
            throw new IngotException("override: expected key=value such as train.steps=200, got " + text);
        }
        String[] path = text.substring(0, equals).split("\\.", -1);
        ObjectNode node = root;
        for (int i = 0; i < path.length - 1; i++) {
            JsonNode next = node.get(path[i]);
            node = next instanceof ObjectNode object ? object : node.putObject(path[i]);
        }
        String last = path[path.length - 1];
        String value = text.substring(equals + 1);
        if (value.matches("[*!&%@`].*")) {
            node.put(last, value); // a glob, which YAML would take for an alias or a tag
            return;
        }
        try {
            node.set(last, YAML.readTree(value));
        } catch (JacksonException e) {
            throw new IngotException("override: the value of " + text + " is no YAML: " + oneLine(e), e);
        }
    }

    /// Without the indented lines, which show places and text.
    private static String oneLine(JacksonException failure) {
        return String.valueOf(failure.getOriginalMessage())
                .lines()
                .filter(line -> !line.isBlank() && !line.startsWith(" "))
                .collect(Collectors.joining("; "));
    }

    private static RunConfig read(Section root) {
        String run = root.text("run", "runs/default");
        int threads = root.integer("threads", 0);
        String memory = root.text("memory", "");

        Section m = root.section("model");
        String type = m.text("type", "gpt");
        require(type.equals("gpt"), "model.type expected gpt, got " + type);
        ModelConfig model = new ModelConfig(
                m.integer("layers", 4),
                m.integer("width", 256),
                m.integer("heads", 4),
                m.integer("context", 256),
                m.real("dropout", 0),
                m.choice("activation", Activation.GELU_TANH),
                m.text("base", ""));
        m.end();

        Section d = root.section("data");
        require(
                d.has("corpus"),
                "data.corpus is missing: a file, a folder, maven:group:artifact:version:jar:sources or"
                        + " npm:name@version");
        DataConfig data = new DataConfig(d.text("corpus", ""), d.texts("include", List.of()), d.real("held-out", 0.1));
        d.end();

        Section k = root.section("tokenizer");
        TokenizerConfig tokenizer = new TokenizerConfig(k.integer("vocabulary", 2048), k.text("file", ""));
        k.end();

        Section t = root.section("train");
        Rule rule = t.choice("optimizer", Rule.ADAMW);
        boolean timed = t.has("epochs");
        int batch = t.integer("batch", 16);
        TrainConfig train = new TrainConfig(
                t.whole("steps", timed ? 0 : 1000),
                t.real("epochs", 0),
                batch,
                t.integer("micro-batch", 0),
                t.integer("shard", 1),
                t.whole("seed", 1),
                rule,
                t.real("learning-rate", 1e-3),
                t.choice("schedule", Curve.COSINE),
                t.whole("warmup", 0),
                t.real("floor", 0),
                t.real("weight-decay", rule == Rule.SGD || rule == Rule.ADAM ? 0 : 0.01),
                t.real("beta1", 0.9),
                t.real("beta2", rule == Rule.LION ? 0.99 : 0.999),
                t.real("epsilon", 1e-8),
                t.real("momentum", 0.9),
                t.real("clip", 1.0),
                t.texts("freeze", List.of()),
                t.flag("recompute", false),
                t.whole("evaluate-every", 0),
                t.whole("checkpoint-every", 0),
                t.whole("log-every", 1));
        t.end();
        root.end();
        return new RunConfig(run, threads, memory, model, data, tokenizer, train);
    }

    /// The whole configuration, defaults included; parses back to an equal record.
    public String toYaml() {
        ObjectNode root = YAML.createObjectNode();
        root.put("run", run);
        root.put("threads", threads);
        root.put("memory", memory);
        ObjectNode m = root.putObject("model");
        m.put("type", "gpt");
        m.put("layers", model.layers());
        m.put("width", model.width());
        m.put("heads", model.heads());
        m.put("context", model.context());
        m.put("dropout", model.dropout());
        m.put("activation", Section.kebab(model.activation()));
        m.put("base", model.base());
        ObjectNode d = root.putObject("data");
        d.put("corpus", data.corpus());
        var include = d.putArray("include");
        data.include().forEach(include::add);
        d.put("held-out", data.heldOut());
        ObjectNode k = root.putObject("tokenizer");
        k.put("vocabulary", tokenizer.vocabulary());
        k.put("file", tokenizer.file());
        ObjectNode t = root.putObject("train");
        t.put("steps", train.steps());
        t.put("epochs", train.epochs());
        t.put("batch", train.batch());
        t.put("micro-batch", train.microBatch());
        t.put("shard", train.shard());
        t.put("seed", train.seed());
        t.put("optimizer", Section.kebab(train.optimizer()));
        t.put("learning-rate", train.learningRate());
        t.put("schedule", Section.kebab(train.schedule()));
        t.put("warmup", train.warmup());
        t.put("floor", train.floor());
        t.put("weight-decay", train.weightDecay());
        t.put("beta1", train.beta1());
        t.put("beta2", train.beta2());
        t.put("epsilon", train.epsilon());
        t.put("momentum", train.momentum());
        t.put("clip", train.clip());
        var freeze = t.putArray("freeze");
        train.freeze().forEach(freeze::add);
        t.put("recompute", train.recompute());
        t.put("evaluate-every", train.evaluateEvery());
        t.put("checkpoint-every", train.checkpointEvery());
        t.put("log-every", train.logEvery());
        return YAML.writeValueAsString(root);
    }

    /// The keys that decide the bits of a run, `train.batch` → `16`: what a resumed run must share with the one that
    /// began.
    public SequencedMap<String, String> identity() {
        SequencedMap<String, String> values = new LinkedHashMap<>();
        flatten("", YAML.readTree(toYaml()), values);
        values.keySet().removeAll(FREE);
        if (train.freeze().isEmpty()) {
            values.remove("train.freeze"); // runs that are older than this key
        }
        return values;
    }

    private static void flatten(String path, JsonNode node, Map<String, String> into) {
        if (node.isObject()) {
            String prefix = path.isEmpty() ? "" : path + ".";
            node.properties().forEach(e -> flatten(prefix + e.getKey(), e.getValue(), into));
        } else {
            into.put(path, node.isArray() ? node.toString() : node.asString());
        }
    }

    private static void require(boolean condition, String message) {
        if (!condition) {
            throw new IngotException("configuration: " + message);
        }
    }
}
