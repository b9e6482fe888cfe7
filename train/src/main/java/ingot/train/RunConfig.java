package ingot.train;

import ingot.ir.IngotException;
import ingot.nn.Activation;
import ingot.nn.GptConfig;
import java.util.List;
import java.util.SequencedMap;
import tools.jackson.databind.node.ObjectNode;

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
        TrainConfig train)
        implements RunSettings {

    public RunConfig {
        ConfigText.requireRun(run, threads, memory);
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

        /// What is taken where the configuration says nothing.
        record Defaults(long steps, double epochs, double learningRate, Curve schedule) {
            static final Defaults FROM_SCRATCH = new Defaults(1000, 0, 1e-3, Curve.COSINE);
            static final Defaults FINE_TUNING = new Defaults(0, 3, 5e-5, Curve.LINEAR);
        }

        static TrainConfig read(Section t, Defaults otherwise) {
            Rule rule = t.choice("optimizer", Rule.ADAMW);
            boolean said = t.has("epochs") || t.has("steps");
            TrainConfig train = new TrainConfig(
                    t.whole("steps", said ? 0 : otherwise.steps()),
                    t.real("epochs", said ? 0 : otherwise.epochs()),
                    t.integer("batch", 16),
                    t.integer("micro-batch", 0),
                    t.integer("shard", 1),
                    t.whole("seed", 1),
                    rule,
                    t.real("learning-rate", otherwise.learningRate()),
                    t.choice("schedule", otherwise.schedule()),
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
            return train;
        }

        void write(ObjectNode t) {
            t.put("steps", steps);
            t.put("epochs", epochs);
            t.put("batch", batch);
            t.put("micro-batch", microBatch);
            t.put("shard", shard);
            t.put("seed", seed);
            t.put("optimizer", Section.kebab(optimizer));
            t.put("learning-rate", learningRate);
            t.put("schedule", Section.kebab(schedule));
            t.put("warmup", warmup);
            t.put("floor", floor);
            t.put("weight-decay", weightDecay);
            t.put("beta1", beta1);
            t.put("beta2", beta2);
            t.put("epsilon", epsilon);
            t.put("momentum", momentum);
            t.put("clip", clip);
            var patterns = t.putArray("freeze");
            freeze.forEach(patterns::add);
            t.put("recompute", recompute);
            t.put("evaluate-every", evaluateEvery);
            t.put("checkpoint-every", checkpointEvery);
            t.put("log-every", logEvery);
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

        /// The recipe where nobody knows how many steps an epoch has.
        Recipe anyRecipe() {
            return recipe(Math.max(1, Math.max(steps, warmup)));
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
        Section root = ConfigText.root(yaml, overrides);
        if (root.has("task")) {
            throw new IngotException(
                    "configuration: it has a task, so it is one of fine-tuning; run it with" + " ingot fine-tune");
        }
        return read(root);
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

        TrainConfig train = TrainConfig.read(root.section("train"), TrainConfig.Defaults.FROM_SCRATCH);
        root.end();
        return new RunConfig(run, threads, memory, model, data, tokenizer, train);
    }

    @Override
    public String toYaml() {
        ObjectNode root = ConfigText.mapping();
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
        train.write(root.putObject("train"));
        return ConfigText.write(root);
    }

    @Override
    public SequencedMap<String, String> identity() {
        SequencedMap<String, String> values = ConfigText.identity(toYaml());
        values.remove("model.base"); // its weights decide, not its place
        return values;
    }

    private static void require(boolean condition, String message) {
        if (!condition) {
            throw new IngotException("configuration: " + message);
        }
    }
}
