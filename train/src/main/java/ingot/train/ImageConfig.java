package ingot.train;

import static ingot.train.ConfigText.require;

import ingot.data.ImagePreparation;
import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.List;
import java.util.SequencedMap;
import tools.jackson.databind.node.ObjectNode;

/// Everything that defines a run which learns the classes of images, from scratch or from a model that exists.
///
/// @param run folder of the run
/// @param threads threads of the backend; 0 means one per core. Never changes a bit.
/// @param memory what the process may use, such as `1GiB`; empty: all in memory if it fits. Never changes a bit.
public record ImageConfig(
        String run, int threads, String memory, ModelConfig model, ImagesConfig data, RunConfig.TrainConfig train)
        implements RunSettings {
    /// The value of `task`.
    static final String TASK = "image-classification";

    /// Networks that can be made here.
    public enum Kind {
        /// Residual blocks of two 3 × 3 convolutions, for small images.
        RESNET,
        /// MobileNetV2, for images of about 100 pixels and more.
        MOBILENET_V2
    }

    /// How an image of another shape becomes a square.
    public enum Fit {
        /// The whole image, stretched.
        STRETCH,
        /// The largest square in the middle.
        CROP
    }

    /// A network to be made, or one to go on from.
    ///
    /// @param from a Hugging Face folder (`vit`), one that was written here, or an ONNX file whose head is
    /// replaced; empty: a new network
    /// @param weights random: the model that exists from scratch, to compare with
    /// @param size height and width of an image; with `from` what that model has
    /// @param stem channels of the first convolution (resnet)
    /// @param blocks in each of the three groups (resnet)
    /// @param width times the channels of the original (mobilenet-v2)
    /// @param dropout before the head (mobilenet-v2)
    public record ModelConfig(
            String from,
            FineTuneConfig.Weights weights,
            Kind type,
            int size,
            int channels,
            int stem,
            int blocks,
            double width,
            double dropout) {
        public ModelConfig {
            require(size >= 1, "model.size expected at least 1, got " + size);
            require(channels == 1 || channels == 3, "model.channels expected 1 (grey) or 3, got " + channels);
            require(stem >= 1 && blocks >= 1, "model.stem and model.blocks expected at least 1");
            require(width > 0, "model.width expected more than 0, got " + width);
            require(dropout >= 0 && dropout < 1, "model.dropout expected 0 to below 1, got " + dropout);
        }
    }

    /// Images with the class of each: a folder per class, an IDX file beside that of its labels, or a CSV file.
    ///
    /// @param heldOut the fraction of every class that training never sees, where there is no `evaluation`
    /// @param evaluation another source with what is held out; empty: a part of `source`
    /// @param labels the classes in order; empty: as they are found. For IDX files: what their numbers are called
    /// @param mean a byte p becomes (p / 255 − mean) / deviation; one number, or one per channel. Empty: what the model
    /// that exists says, else ½
    /// @param flip half of the images of training are turned left to right
    /// @param shift images of training move by up to so many pixels
    public record ImagesConfig(
            String source,
            double heldOut,
            String evaluation,
            List<String> labels,
            Fit fit,
            List<Double> mean,
            List<Double> deviation,
            boolean flip,
            int shift) {
        public ImagesConfig {
            labels = List.copyOf(labels);
            mean = List.copyOf(mean);
            deviation = List.copyOf(deviation);
            require(
                    !source.isBlank(),
                    "data.source expected a folder with a folder per class, an IDX file of images or a CSV file,"
                            + " got nothing");
            require(heldOut > 0 && heldOut < 1, "data.held-out expected between 0 and 1, got " + heldOut);
            require(mean.isEmpty() == deviation.isEmpty(), "data.mean and data.deviation are given both or not at all");
            require(shift >= 0, "data.shift expected at least 0, got " + shift);
        }
    }

    public ImageConfig {
        ConfigText.requireRun(run, threads, memory);
    }

    /// Reads YAML text; each override is `key.path=value` and wins over the text.
    public static ImageConfig parse(String yaml, List<String> overrides) {
        return read(ConfigText.root(yaml, overrides));
    }

    static boolean is(Section root) {
        return root.has("task") && root.text("task", "").equals(TASK);
    }

    static ImageConfig read(Section root) {
        String task = root.text("task", "");
        if (!task.equals(TASK)) {
            throw new IngotException("configuration: task expected " + TASK + ", got '" + task + "'");
        }
        String run = root.text("run", "runs/default");
        int threads = root.integer("threads", 0);
        String memory = root.text("memory", "");

        Section m = root.section("model");
        ModelConfig model = new ModelConfig(
                m.text("from", ""),
                m.choice("weights", FineTuneConfig.Weights.PRETRAINED),
                m.choice("type", Kind.RESNET),
                m.integer("size", 28),
                m.integer("channels", 3),
                m.integer("stem", 16),
                m.integer("blocks", 1),
                m.real("width", 1),
                m.real("dropout", 0));
        m.end();

        Section d = root.section("data");
        ImagesConfig data = new ImagesConfig(
                d.text("source", ""),
                d.real("held-out", 0.1),
                d.text("evaluation", ""),
                d.texts("labels", List.of()),
                d.choice("fit", Fit.STRETCH),
                numbers(d, "mean"),
                numbers(d, "deviation"),
                d.flag("flip", false),
                d.integer("shift", 0));
        d.end();

        RunConfig.TrainConfig.Defaults defaults = model.from().isEmpty()
                ? RunConfig.TrainConfig.Defaults.FROM_SCRATCH
                : RunConfig.TrainConfig.Defaults.FINE_TUNING;
        RunConfig.TrainConfig train = RunConfig.TrainConfig.read(root.section("train"), defaults);
        root.end();
        return new ImageConfig(run, threads, memory, model, data, train);
    }

    private static List<Double> numbers(Section section, String key) {
        List<Double> numbers = new ArrayList<>();
        for (String text : section.texts(key, List.of())) {
            try {
                numbers.add(Double.valueOf(text));
            } catch (NumberFormatException e) {
                throw new IngotException("configuration: data." + key + " expected numbers, got '" + text + "'", e);
            }
        }
        return numbers;
    }

    /// How the images become numbers of `channels` channels.
    ///
    /// @param otherwise gives mean and deviation where the configuration says nothing
    ImagePreparation preparation(ImagePreparation otherwise) {
        ImagePreparation same = data.mean().isEmpty() ? otherwise : otherwise.normalised(data.mean(), data.deviation());
        return same.cropped(data.fit() == Fit.CROP).augmented(data.flip(), data.shift());
    }

    @Override
    public String toYaml() {
        ObjectNode root = ConfigText.mapping();
        root.put("task", TASK);
        root.put("run", run);
        root.put("threads", threads);
        root.put("memory", memory);
        ObjectNode m = root.putObject("model");
        m.put("from", model.from());
        m.put("weights", Section.kebab(model.weights()));
        m.put("type", Section.kebab(model.type()));
        m.put("size", model.size());
        m.put("channels", model.channels());
        m.put("stem", model.stem());
        m.put("blocks", model.blocks());
        m.put("width", model.width());
        m.put("dropout", model.dropout());
        ObjectNode d = root.putObject("data");
        d.put("source", data.source());
        d.put("held-out", data.heldOut());
        d.put("evaluation", data.evaluation());
        data.labels().forEach(d.putArray("labels")::add);
        d.put("fit", Section.kebab(data.fit()));
        data.mean().forEach(d.putArray("mean")::add);
        data.deviation().forEach(d.putArray("deviation")::add);
        d.put("flip", data.flip());
        d.put("shift", data.shift());
        train.write(root.putObject("train"));
        return ConfigText.write(root);
    }

    @Override
    public SequencedMap<String, String> identity() {
        SequencedMap<String, String> values = ConfigText.identity(toYaml());
        values.remove("model.from"); // the weights and the images decide, not their place
        values.remove("data.source");
        values.remove("data.evaluation");
        return values;
    }
}
