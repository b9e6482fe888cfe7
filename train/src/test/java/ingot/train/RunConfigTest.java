package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.nn.Activation;
import ingot.nn.GptConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class RunConfigTest {
    private static final String SMALL = "data: {corpus: c}\n";

    @Test
    void theTextFormParsesBack() {
        RunConfig config = RunConfig.parse(
                SMALL,
                List.of(
                        "train.epochs=1.5",
                        "train.optimizer=lion",
                        "train.learning-rate=1e-4",
                        "data.include=[a, 'b*']",
                        "model.activation=gelu",
                        "train.seed=-123456789012"));
        assertThat(RunConfig.parse(config.toYaml(), List.of())).isEqualTo(config);
        assertThat(config.train().seed()).isEqualTo(-123456789012L);
        assertThat(config.data().include()).containsExactly("a", "b*");
        assertThat(config.train().steps()).isZero();
    }

    @Test
    void overridesWin() {
        RunConfig config = RunConfig.parse(
                SMALL + "train: {steps: 7, batch: 3}", List.of("train.steps=200", "tokenizer.vocabulary=300"));
        assertThat(config.train().steps()).isEqualTo(200);
        assertThat(config.train().batch()).isEqualTo(3);
        assertThat(config.tokenizer().vocabulary()).isEqualTo(300);
    }

    @Test
    void defaultsFollowTheOptimizer() {
        assertThat(train("sgd").weightDecay()).isZero();
        assertThat(train("adamw").weightDecay()).isEqualTo(0.01);
        assertThat(train("adamw").beta2()).isEqualTo(0.999);
        assertThat(train("lion").beta2()).isEqualTo(0.99);
        assertThat(train("adamw").rule()).isEqualTo(Optimizer.AdamW.DEFAULT);
        assertThat(train("sgd").rule()).isEqualTo(new Optimizer.Sgd(0.9, 0));
    }

    private static RunConfig.TrainConfig train(String optimizer) {
        return RunConfig.parse(SMALL, List.of("train.optimizer=" + optimizer)).train();
    }

    @Test
    void numbersInEveryNotation() {
        for (String rate : List.of("1e-3", "0.001", "1.0E-3", "\"0.001\"")) {
            RunConfig config = RunConfig.parse(SMALL, List.of("train.learning-rate=" + rate));
            assertThat(config.train().learningRate()).isEqualTo(0.001);
        }
        assertThat(RunConfig.parse(SMALL, List.of("train.steps=1_000")).train().steps())
                .isEqualTo(1000);
    }

    @Test
    void identityLeavesOutWhatShowsInNoBit() {
        RunConfig one = RunConfig.parse(SMALL, List.of());
        RunConfig other = RunConfig.parse(
                SMALL,
                List.of(
                        "run=elsewhere",
                        "threads=7",
                        "train.micro-batch=2",
                        "train.recompute=true",
                        "train.evaluate-every=3",
                        "train.checkpoint-every=3",
                        "train.log-every=3"));
        assertThat(other.identity()).isEqualTo(one.identity());
        assertThat(one.identity()).containsEntry("train.batch", "16").containsEntry("data.corpus", "c");
        assertThat(RunConfig.parse(SMALL, List.of("train.batch=8")).identity()).isNotEqualTo(one.identity());
    }

    @Test
    void theModelHasTheSizesAskedFor() {
        GptConfig gpt = RunConfig.parse(SMALL, List.of("model.dropout=0.1", "model.activation=relu"))
                .model()
                .gpt(500);
        assertThat(gpt.vocabulary()).isEqualTo(500);
        assertThat(gpt.attentionDropout()).isEqualTo(0.1);
        assertThat(gpt.activation()).isEqualTo(Activation.RELU);
    }

    /// What newcomers start from must parse.
    @Test
    void examples() throws IOException {
        Path folder = Path.of("..", "examples");
        try (Stream<Path> files = Files.list(folder)) {
            List<Path> examples =
                    files.filter(f -> f.toString().endsWith(".yaml")).toList();
            assertThat(examples).isNotEmpty();
            for (Path example : examples) {
                RunSettings config = RunSettings.parse(Files.readString(example), List.of());
                assertThat(config.train()
                                .recipe(Math.max(
                                        1,
                                        Math.max(
                                                config.train().steps(),
                                                config.train().warmup())))
                                .batch())
                        .isPositive();
            }
        }
    }
}
