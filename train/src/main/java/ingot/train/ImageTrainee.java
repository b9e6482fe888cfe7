package ingot.train;

import ingot.data.HeldOut;
import ingot.data.ImagePreparation;
import ingot.data.ImageSet;
import ingot.data.Images;
import ingot.formats.BaseFiles;
import ingot.formats.HuggingFace;
import ingot.ir.IngotException;
import ingot.nn.ImageClassifier;
import ingot.nn.MobileNet;
import ingot.nn.Parameter;
import ingot.nn.ResNet;
import ingot.store.Safetensors;
import ingot.store.WeightStore.Key;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A classifier of images: a new network, or one that exists and goes on learning, perhaps other classes.
///
/// @param base the model that exists; null for a new one
record ImageTrainee(ImageConfig config, @Nullable BaseModel base) implements Trainee {
    static ImageTrainee open(ImageConfig config) {
        if (config.model().from().isEmpty()) {
            return new ImageTrainee(config, null);
        }
        Path path = Path.of(config.model().from());
        if (!Files.exists(path)) {
            throw new IngotException(
                    "model.from: no such file or folder: " + config.model().from() + "; expected a"
                            + " folder with config.json and model.safetensors, or an ONNX file");
        }
        BaseModel base = path.getFileName().toString().endsWith(".onnx")
                ? OnnxImageBase.open(
                        path, config.model().size(), RunFolder.of(config).path())
                : new BaseModel.FolderModel(HuggingFace.open(path), BaseFiles.open(path));
        Path run = Path.of(config.run()).toAbsolutePath().normalize();
        if (base.folder().toAbsolutePath().normalize().equals(run)) {
            base.close();
            throw new IngotException(
                    "configuration: model.from " + config.model().from() + " lies in the run folder,"
                            + " where the run writes its own model; choose another with run=…");
        }
        return new ImageTrainee(config, base);
    }

    @Override
    public Map<String, String> origin() {
        return base == null ? Map.of() : Map.of(RunIdentity.BASE, base.weights().fingerprint());
    }

    @Override
    public Lesson lesson(RunFolder folder, Callback callback) {
        ImageConfig.ImagesConfig data = config.data();
        callback.onPhase("reading " + data.source(), 0, 0);
        Images all = labelled(Images.open(Path.of(data.source())), data.labels());
        Images training = all;
        Images heldOut;
        if (data.evaluation().isEmpty()) {
            HeldOut.Split split = HeldOut.of(
                    IntStream.range(0, all.count()).mapToObj(all::name).toList(),
                    IntStream.range(0, all.count())
                            .mapToObj(i -> all.classes().get(all.label(i)))
                            .toList(),
                    data.heldOut(),
                    config.train().seed());
            training = all.subset(split.training());
            heldOut = all.subset(split.heldOut());
        } else {
            callback.onPhase("reading " + data.evaluation(), 0, 0);
            heldOut = Images.open(Path.of(data.evaluation()));
            heldOut = labelled(heldOut, data.labels().isEmpty() ? all.classes() : data.labels());
        }
        if (training.count() == 0 || heldOut.count() == 0) {
            throw new IngotException(data.source() + ": " + all.count() + " images are too few to hold some out; name"
                    + " others to measure with in data.evaluation");
        }
        List<String> labels = all.classes();
        List<DataSummary.Group> groups = groups(labels, training, heldOut);
        ImageClassifier model = model(labels.size());
        ImagePreparation preparation = preparation(model);
        Map<String, String> fingerprints = new LinkedHashMap<>();
        fingerprints.put("the images", training.fingerprint());
        fingerprints.put("the labels", String.join(", ", labels));
        return new ImageLesson(
                model,
                ImageSet.of(training, preparation),
                ImageSet.of(heldOut, preparation),
                start(model),
                config.train(),
                fingerprints,
                new DataSummary.Examples(
                        "image", groups, model.imageSize() + " × " + model.imageSize() + " pixels", 0, describe()),
                writer(model, labels));
    }

    /// With the classes that are said: other names for numbers, else another order.
    private static Images labelled(Images images, List<String> labels) {
        if (labels.isEmpty()) {
            return images;
        }
        boolean numbers = images.classes().stream().allMatch(name -> name.matches("\\d+"));
        return numbers && !labels.containsAll(images.classes()) ? images.named(labels) : images.labelled(labels);
    }

    private static List<DataSummary.Group> groups(List<String> labels, Images training, Images heldOut) {
        int[] learned = new int[labels.size()];
        int[] measured = new int[labels.size()];
        IntStream.range(0, training.count()).forEach(i -> learned[training.label(i)]++);
        IntStream.range(0, heldOut.count()).forEach(i -> measured[heldOut.label(i)]++);
        List<DataSummary.Group> groups = new ArrayList<>();
        for (int i = 0; i < learned.length; i++) {
            if (learned[i] == 0) {
                throw new IngotException("data: there is no image of the class '" + labels.get(i) + "' to learn from;"
                        + " give some, or take it out of data.labels");
            }
            groups.add(new DataSummary.Group(labels.get(i), learned[i], measured[i]));
        }
        return groups;
    }

    @Override
    public Lesson withoutData(RunFolder folder) {
        List<String> labels = TunedFile.read(folder.path()).labels();
        ImageClassifier model = model(labels.size());
        return new Untaught(
                ImageLesson.task(model, start(model), (step, executor) -> 0), writer(model, labels), () -> {});
    }

    private ImageClassifier model(int labels) {
        if (base != null) {
            if (base.network() instanceof ImageClassifier images) {
                return images.withLabels(labels);
            }
            throw new IngotException("configuration: task " + ImageConfig.TASK + " needs a classifier of images;"
                    + " model.from is " + base.describe());
        }
        ImageConfig.ModelConfig m = config.model();
        return switch (m.type()) {
            case RESNET -> ResNet.small(m.size(), m.channels(), m.stem(), m.blocks(), labels);
            case MOBILENET_V2 -> new MobileNet(m.width(), m.size(), m.channels(), labels, 1e-5, 0.1, m.dropout(), 0.01);
        };
    }

    private String describe() {
        return base != null ? base.describe() : Section.kebab(config.model().type()) + " from scratch";
    }

    private ImagePreparation preparation(ImageClassifier model) {
        return config.preparation(
                base != null
                        ? ImageProcessor.read(base.folder(), model)
                        : ImagePreparation.of(model.channels(), model.imageSize()));
    }

    private Start start(ImageClassifier model) {
        List<Parameter> parameters = model.weights();
        boolean random = config.model().weights() == FineTuneConfig.Weights.RANDOM;
        if (random && !model.tracks() && !model.statistics().isEmpty()) {
            throw new IngotException("configuration: model.weights is random, but the norms of " + describe()
                    + " need the statistics of the file");
        }
        if (base != null && !random) {
            base.weights().rename(base.names(parameters));
        }
        Start start = Start.grown(
                parameters,
                base == null || random ? null : base.weights(),
                config.train().freeze());
        if (model.tracks()) {
            return start;
        }
        Set<String> frozen = new HashSet<>(start.frozen());
        model.statistics().forEach(statistic -> frozen.add(statistic.name()));
        return new Start(start.base(), frozen);
    }

    private Untaught.Writer writer(ImageClassifier model, List<String> labels) {
        ImagePreparation preparation = preparation(model);
        return (to, store) -> {
            Safetensors.Contents contents = (name, reader) -> store.read(Key.weight(name), reader);
            if (base == null) {
                HuggingFace.saveNew(to, model, labels, contents);
            } else {
                base.save(to, model, labels, contents);
            }
            ImageProcessor.write(to, preparation);
            new TunedFile(labels, 0).write(to);
        };
    }

    @Override
    public void close() {
        if (base != null) {
            base.close();
        }
    }
}
