package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ingot.compiler.Backend;
import ingot.data.ImagePreparation;
import ingot.data.ImageSet;
import ingot.data.Images;
import ingot.formats.HuggingFace;
import ingot.ir.IngotException;
import ingot.nn.Activation;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.ImageClassifier;
import ingot.nn.Mlp;
import ingot.nn.ResNet;
import ingot.nn.Vit;
import ingot.nn.VitConfig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// The Keras-like and the Estimator face, on toys.
class ModelTest {
    private static final int ROWS = 150;

    @TempDir
    Path folder;

    private final Backend backend = Backends.tested();
    private final float[][] x = new float[ROWS][2];
    private final int[] quadrant = new int[ROWS];
    private final float[][] product = new float[ROWS][1];

    ModelTest() {
        Random random = new Random(4);
        for (int i = 0; i < ROWS; i++) {
            x[i][0] = 2 * random.nextFloat() - 1;
            x[i][1] = 2 * random.nextFloat() - 1;
            quadrant[i] = (x[i][0] > 0 ? 1 : 0) + (x[i][1] > 0 ? 2 : 0);
            product[i][0] = x[i][0] * x[i][1];
        }
    }

    private Model classifier() {
        return Model.of(Mlp.of(2, 16, 4), backend)
                .compile(Optimizer.AdamW.DEFAULT, Schedule.constant(0.02, 0), Loss.CROSS_ENTROPY, 32);
    }

    @Test
    void classifies() {
        try (Model model = classifier()) {
            Examples examples = Examples.of(x, quadrant);
            double before = model.evaluate(examples);
            List<Float> history = model.fit(examples, 40);
            assertThat(history).hasSize((int) Math.ceil(40.0 * ROWS / 32));
            assertThat(model.step()).isEqualTo(history.size());
            assertThat(before).isGreaterThan(1.2);
            assertThat(model.evaluate(examples)).isLessThan(0.2);
            float[][] logits = model.predict(x);
            int right = 0;
            for (int i = 0; i < ROWS; i++) {
                int best = 0;
                for (int c = 1; c < 4; c++) {
                    best = logits[i][c] > logits[i][best] ? c : best;
                }
                right += best == quadrant[i] ? 1 : 0;
            }
            assertThat(right).isGreaterThan(ROWS * 9 / 10);
        }
    }

    @Test
    void regresses() {
        try (Model model = Model.of(Mlp.of(2, 32, 1), backend)
                .compile(Optimizer.AdamW.DEFAULT, Schedule.constant(0.02, 0), Loss.MEAN_SQUARED_ERROR, 50)) {
            Examples examples = Examples.of(x, product);
            model.fit(examples, 100);
            double loss = model.evaluate(examples);
            assertThat(loss).isLessThan(0.003);
            double sum = 0;
            float[][] found = model.predict(x);
            for (int i = 0; i < ROWS; i++) {
                sum += Math.pow(found[i][0] - product[i][0], 2);
            }
            assertThat(loss).isCloseTo(sum / ROWS, within(1e-6));
        }
    }

    @Test
    void fittingInPartsIsFittingAtOnce() {
        try (Model once = classifier();
                Model parts = classifier()) {
            Examples examples = Examples.of(x, quadrant);
            once.advance(examples, 6L);
            parts.advance(examples, 4L);
            parts.evaluate(examples);
            parts.advance(examples, 2L);
            for (var parameter : once.parameters()) {
                assertThat(parts.weight(parameter.name())).isEqualTo(once.weight(parameter.name()));
            }
        }
    }

    @Test
    void aLanguageModelIsSavedInItsFormat() {
        Gpt gpt = Gpt.of(GptConfig.of(300, 8, 16, 1, 2));
        try (Model model = Model.of(gpt, backend)
                .compile(Optimizer.AdamW.DEFAULT, Schedule.constant(0.01, 0), Loss.NEXT_TOKEN, 4)) {
            model.save(folder, 0);
            try (HuggingFace saved = HuggingFace.open(folder)) {
                assertThat(((Gpt) saved.model()).config()).isEqualTo(gpt.config());
            }
            assertThatThrownBy(() -> model.advance(Examples.of(x, quadrant), 1L))
                    .isInstanceOf(IngotException.class)
                    .hasMessage("examples: classes do not fit the loss next-token");
        }
    }

    @Test
    void wrongUseIsRefused() {
        try (Model model = Model.of(Mlp.of(2, 4), backend)) {
            assertThatThrownBy(() -> model.advance(Examples.of(x, quadrant), 1L))
                    .hasMessageContaining("call compile");
            assertThatThrownBy(() ->
                            model.compile(Optimizer.AdamW.DEFAULT, Schedule.constant(0.01, 0), Loss.NEXT_TOKEN, 4))
                    .hasMessageContaining("needs a language model");
        }
        try (Model model = classifier()) {
            assertThatThrownBy(() -> model.advance(Examples.of(x, product), 1L))
                    .hasMessageContaining("values do not fit");
            assertThatThrownBy(() -> model.advance(Examples.of(new float[][] {{1, 2, 3}}, new int[] {0}), 1L))
                    .hasMessage("examples: inputs of 3 numbers per row, the model has 2");
            assertThatThrownBy(() -> model.advance(Examples.of(new float[][] {{1, 2}}, new int[] {4}), 1L))
                    .hasMessageContaining("has the class 4, the model has 4 outputs");
        }
        assertThatThrownBy(() -> Examples.of(x, new int[3])).hasMessageContaining("as many targets as inputs");
        assertThatThrownBy(() -> Examples.of(new float[][] {{1}, {1, 2}}, new int[2]))
                .hasMessage("examples: row 1 has 2 numbers, row 0 has 1");
    }

    private Estimator<Integer> estimator(String name, int width) {
        return Estimator.of(
                inner -> Model.of(Mlp.of(2, inner, 4), backend)
                        .compile(Optimizer.AdamW.DEFAULT, Schedule.constant(0.02, 0), Loss.CROSS_ENTROPY, 32),
                folder.resolve(name),
                width);
    }

    @Test
    void anEstimatorContinuesFromItsFolder() {
        Estimator<Integer> once = estimator("once", 16);
        Estimator<Integer> parts = estimator("parts", 16);
        double last = once.train(() -> Examples.of(x, quadrant), 100);
        parts.train(() -> Examples.of(x, quadrant), 60);
        assertThat(parts.train(() -> Examples.of(x, quadrant), 40)).isEqualTo(last);
        assertThat(parts.step()).isEqualTo(100);
        assertThat(estimator("parts", 16).evaluate(() -> Examples.of(x, quadrant)))
                .isEqualTo(once.evaluate(() -> Examples.of(x, quadrant)))
                .isLessThan(0.6);
        assertThat(parts.predict(() -> x)).isEqualTo(once.predict(() -> x));
    }

    @Test
    void anEstimatorRefusesOtherParametersAndEmptyFolders() {
        estimator("one", 16).train(() -> Examples.of(x, quadrant), 1);
        assertThatThrownBy(() -> estimator("one", 8).train(() -> Examples.of(x, quadrant), 1))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("parameters=16")
                .hasMessageContaining("parameters=8");
        assertThatThrownBy(() -> estimator("none", 8).evaluate(() -> Examples.of(x, quadrant)))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("has no trained model");
        assertThatThrownBy(() -> estimator("one", 16).train(() -> Examples.of(x, quadrant), 0))
                .hasMessageContaining("steps expected at least 1");
    }

    /// Bright images on the left or on the right, some in files of other sizes.
    private ImageSet sides() throws IOException {
        Random random = new Random(9);
        for (int i = 0; i < 24; i++) {
            int side = i % 2;
            int size = i % 3 == 0 ? 16 : 8;
            ByteBuffer bitmap = bitmap(size);
            for (int pixel = 0; pixel < size * size; pixel++) {
                boolean bright = 2 * (pixel % size) / size == side;
                byte grey = (byte) ((bright ? 150 : 0) + random.nextInt(100));
                bitmap.put(grey).put(grey).put(grey);
            }
            Path file = folder.resolve(side == 0 ? "sides/left" : "sides/right").resolve(i + ".bmp");
            Files.createDirectories(file.getParent());
            Files.write(file, bitmap.array());
        }
        return ImageSet.of(
                Images.open(folder.resolve("sides")), ImagePreparation.of(1, 8).augmented(false, 1));
    }

    /// The header of a square BMP with 24 bits per pixel; a multiple of 4 pixels, so that rows need no padding.
    private static ByteBuffer bitmap(int size) {
        ByteBuffer file = ByteBuffer.allocate(54 + 3 * size * size).order(ByteOrder.LITTLE_ENDIAN);
        file.put((byte) 'B').put((byte) 'M').putInt(file.capacity()).putInt(0).putInt(54);
        file.putInt(40).putInt(size).putInt(size).putShort((short) 1).putShort((short) 24);
        return file.position(54);
    }

    static List<ImageClassifier> imageClassifiers() {
        return List.of(
                ResNet.small(8, 1, 4, 1, 2),
                new Vit(new VitConfig(8, 4, 1, 16, 1, 2, 32, 2, 1e-6, Activation.GELU, true, false, 0.1, 0.1, 0.1)));
    }

    @ParameterizedTest
    @MethodSource("imageClassifiers")
    void seesImages(ImageClassifier network) throws IOException {
        ImageSet images = sides();
        List<List<Float>> losses = new ArrayList<>();
        for (int run = 0; run < 2; run++) {
            try (Model model = Model.of(network, backend)
                    .compile(Optimizer.AdamW.DEFAULT, Schedule.constant(0.01, 0), Loss.CROSS_ENTROPY, 12)) {
                losses.add(model.fit(Examples.of(images), run == 0 ? 40 : 2));
                if (run == 0) {
                    assertThat(model.evaluate(Examples.of(images))).isLessThan(0.4);
                    float[][] logits = model.predict(new float[][] {images.numbers(0), images.numbers(12)});
                    assertThat(logits[0][0]).isGreaterThan(logits[0][1]);
                    assertThat(logits[1][1]).isGreaterThan(logits[1][0]);
                }
            }
        }
        assertThat(losses.get(1))
                .isEqualTo(losses.get(0).subList(0, losses.get(1).size()));
    }

    @Test
    void anEstimatorOfImagesGoesOnWhereItWas() throws IOException {
        ImageSet images = sides();
        Estimator<Integer> once = estimator("once");
        Estimator<Integer> twice = estimator("twice");
        double last = once.train(() -> Examples.of(images), 6);
        twice.train(() -> Examples.of(images), 3);
        assertThat(twice.train(() -> Examples.of(images), 3)).isEqualTo(last);
        assertThat(twice.evaluate(() -> Examples.of(images))).isEqualTo(once.evaluate(() -> Examples.of(images)));
    }

    private Estimator<Integer> estimator(String name) {
        return Estimator.of(
                stem -> Model.of(ResNet.small(8, 1, stem, 1, 2), backend)
                        .compile(Optimizer.AdamW.DEFAULT, Schedule.constant(0.01, 0), Loss.CROSS_ENTROPY, 12),
                folder.resolve(name),
                4);
    }

    @Test
    void imagesThatDoNotFitAreRefused() throws IOException {
        ImageSet images = sides();
        try (Model model = Model.of(ResNet.small(16, 1, 4, 1, 2), backend)
                .compile(Optimizer.AdamW.DEFAULT, Schedule.constant(0.01, 0), Loss.CROSS_ENTROPY, 12)) {
            assertThatThrownBy(() -> model.fit(Examples.of(images), 1))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("size 8, the model has 1 and 16");
        }
        try (Model model = classifier()) {
            assertThatThrownBy(() -> model.fit(Examples.of(images), 1))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("images do not fit the loss cross-entropy");
        }
    }
}
