package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.compiler.Backend;
import ingot.ir.IngotException;
import ingot.testkit.Reference;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Runs over folders of images: from scratch and on from a model, stopped, streamed, and asked afterwards.
class ImageRunTest {
    private static final String SCRATCH = """
        task: image-classification
        model: {size: 8, channels: 1, stem: 4}
        data: {shift: 1, held-out: 0.25}
        train: {epochs: 12, batch: 12, learning-rate: 0.02, checkpoint-every: 5, shard: 12}
        """;

    @TempDir
    Path folder;

    private final Backend backend = Backends.tested();

    /// Bright on the left or on the right.
    @BeforeEach
    void images() throws IOException {
        Random random = new Random(9);
        for (int i = 0; i < 48; i++) {
            String side = i % 2 == 0 ? "left" : "right";
            int size = i % 3 == 0 ? 16 : 8;
            ByteBuffer file = ByteBuffer.allocate(54 + 3 * size * size).order(ByteOrder.LITTLE_ENDIAN);
            file.put((byte) 'B')
                    .put((byte) 'M')
                    .putInt(file.capacity())
                    .putInt(0)
                    .putInt(54);
            file.putInt(40).putInt(size).putInt(size).putShort((short) 1).putShort((short) 24);
            file.position(54);
            for (int pixel = 0; pixel < size * size; pixel++) {
                boolean bright = 2 * (pixel % size) / size == i % 2;
                byte grey = (byte) ((bright ? 150 : 0) + random.nextInt(100));
                file.put(grey).put(grey).put(grey);
            }
            Path path = folder.resolve("sides").resolve(side).resolve(i + ".bmp");
            Files.createDirectories(path.getParent());
            Files.write(path, file.array());
        }
    }

    private ImageConfig config(String yaml, String run, String... overrides) {
        List<String> all = new ArrayList<>(List.of(overrides));
        all.add("run=" + folder.resolve(run));
        all.add("data.source=" + folder.resolve("sides"));
        return ImageConfig.parse(yaml, all);
    }

    private TrainingRun.Outcome train(ImageConfig config, Callback callback) {
        return new TrainingRun(config, backend, callback).train();
    }

    private static Callback stopAfter(long steps) {
        return new Callback() {
            private boolean stop;

            @Override
            public void onStep(StepReport report) {
                stop = report.step() == steps;
            }

            @Override
            public boolean stop() {
                return stop;
            }
        };
    }

    private static final Callback SILENT = new Callback() {};

    @Test
    void aNewNetworkLearnsAndIsAsked() {
        TrainingRun.Outcome outcome = train(config(SCRATCH, "run"), SILENT);
        Evaluation.Classes found = (Evaluation.Classes) outcome.evaluation();
        assertThat(found.confusion().labels()).containsExactly("left", "right");
        assertThat(found.confusion().accuracy()).isGreaterThan(0.9);
        assertThat(ImageLabeler.fits(folder.resolve("run"))).isTrue();
        try (ImageLabeler labeler = ImageLabeler.open(folder.resolve("run"), backend)) {
            assertThat(labeler.guess(folder.resolve("sides/left/0.bmp"))
                            .getFirst()
                            .label())
                    .isEqualTo("left");
            List<ImageLabeler.Guess> right = labeler.guess(folder.resolve("sides/right/1.bmp"));
            assertThat(right.getFirst().label()).isEqualTo("right");
            assertThat(right.stream()
                            .mapToDouble(ImageLabeler.Guess::probability)
                            .sum())
                    .isCloseTo(1, org.assertj.core.api.Assertions.within(1e-6));
        }
    }

    @Test
    void stoppedOrStreamedTheBitsAreTheSame() {
        String expected = train(config(SCRATCH, "whole"), SILENT).digest();
        assertThat(train(config(SCRATCH, "parts"), stopAfter(7)).finished()).isFalse();
        assertThat(train(config(SCRATCH, "parts"), SILENT).digest()).isEqualTo(expected);
        assertThat(train(config(SCRATCH, "moved"), stopAfter(7)).finished()).isFalse();
        assertThat(train(config(SCRATCH, "moved", "memory=8GiB"), SILENT).digest())
                .isEqualTo(expected);
    }

    /// The head is new, the statistics of the folder are frozen with all else.
    @Test
    void aModelThatExistsLearnsOtherClasses() {
        train(config(SCRATCH, "first", "train.steps=6", "train.epochs=0"), SILENT);
        ImageConfig config = config(
                "task: image-classification",
                "second",
                "model.from=" + folder.resolve("first"),
                "data.labels=[right, left]",
                "train.steps=3",
                "train.batch=8",
                "train.micro-batch=4",
                "train.freeze=[layer*, conv1*, bn1*]");
        TrainingRun.Outcome outcome = train(config, SILENT);
        assertThat(outcome.finished()).isTrue();
        try (ImageLabeler labeler = ImageLabeler.open(folder.resolve("second"), backend)) {
            assertThat(labeler.guess(folder.resolve("sides/left/0.bmp")))
                    .extracting(ImageLabeler.Guess::label)
                    .containsExactlyInAnyOrder("left", "right");
        }
    }

    /// As Hugging Face has it: the head of 5 classes gives way to one of 2.
    @Test
    void aVisionTransformerIsTuned() {
        ImageConfig config = config(
                "task: image-classification",
                "vit",
                "model.from=" + Reference.orSkip("vit"),
                "train.steps=2",
                "train.batch=4");
        assertThat(train(config, SILENT).finished()).isTrue();
        try (ImageLabeler labeler = ImageLabeler.open(folder.resolve("vit"), backend)) {
            assertThat(labeler.guess(folder.resolve("sides/left/0.bmp"))).hasSize(2);
        }
    }

    /// The file up to its last linear layer; what was there before is frozen.
    @Test
    void aModelInOnnxGetsAnotherHead() {
        Path file = Reference.orSkip("mobilenet_v2").resolve("model.onnx");
        ImageConfig config = config(
                "task: image-classification",
                "onnx",
                "model.from=" + file,
                "model.size=64",
                "train.steps=2",
                "train.batch=4",
                "train.freeze=['*', '!head.*']");
        assertThat(train(config, SILENT).finished()).isTrue();
        try (ImageLabeler labeler = ImageLabeler.open(folder.resolve("onnx"), backend)) {
            assertThat(labeler.guess(folder.resolve("sides/left/0.bmp"))).hasSize(2);
        }
    }

    @Test
    void aConfigurationIsWhatItSays() {
        ImageConfig config = config(SCRATCH, "run", "data.mean=[0.1]", "data.deviation=[0.2]", "data.fit=crop");
        assertThat(RunSettings.parse(config.toYaml(), List.of())).isEqualTo(config);
        assertThat(config.identity()).containsEntry("data.fit", "crop").doesNotContainKey("data.source");
        assertThatThrownBy(() -> config(SCRATCH, "run", "data.flipp=true"))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("did you mean data.flip?");
        assertThatThrownBy(() -> config(SCRATCH, "run", "data.mean=[0.1]"))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("both or not at all");
        assertThatThrownBy(() -> config(SCRATCH, "run", "data.mean=[grey]"))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("data.mean expected numbers, got 'grey'");
        assertThatThrownBy(() -> config(SCRATCH, "run", "model.channels=2"))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("model.channels expected 1 (grey) or 3, got 2");
    }

    @Test
    void mistakesAreNamed() throws IOException {
        assertThatThrownBy(() -> train(config(SCRATCH, "run", "data.labels=[left, wrong]"), SILENT))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("of the class right, which is not among [left, wrong]");
        assertThatThrownBy(() -> train(config(SCRATCH, "run", "data.labels=[left, right, top]"), SILENT))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("no image of the class 'top' to learn from");
        assertThatThrownBy(() -> train(config(SCRATCH, "run", "train.micro-batch=4", "train.shard=4"), SILENT))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("use train.micro-batch = batch");
        Files.writeString(folder.resolve("sides/left/broken.png"), "no image");
        assertThatThrownBy(() -> train(config(SCRATCH, "run"), SILENT))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("broken.png is no PNG, JPEG, BMP or GIF");
    }
}
