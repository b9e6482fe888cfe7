package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.formats.HuggingFace;
import ingot.formats.OnnxBinding;
import ingot.formats.OnnxImport;
import ingot.formats.OnnxModel;
import ingot.formats.PortableModel;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.nn.Head;
import ingot.testkit.Reference;
import ingot.train.SmallRun.Watcher;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Every task on tiny models: it learns, is stopped and goes on with the same bits, and its folder opens.
class FineTuneTasksTest {
    private static final List<String> WORDS =
            List.of("red", "blue", "green", "cat", "dog", "bird", "runs", "sits", "flies", "two", "three");

    @TempDir
    Path folder;

    private Path model(String name) throws IOException {
        Path to = folder.resolve(name);
        Files.createDirectories(to);
        for (String file : List.of("config.json", "model.safetensors", "model.onnx")) {
            Path from = Reference.orSkip(name).resolve(file);
            if (Files.exists(from)) {
                Files.copy(from, to.resolve(file));
            }
        }
        TinyTokenizer.write(to.resolve("tokenizer.json"), WORDS);
        return to;
    }

    private FineTuneConfig config(String task, String run, Path model, String data, String... overrides) {
        List<String> all = new ArrayList<>(List.of(overrides));
        return FineTuneConfig.parse("""
            task: %s
            run: %s
            model: {from: '%s'}
            data: {source: '%s', held-out: 0.2}
            train: {steps: 10, batch: 8, learning-rate: 0.01, checkpoint-every: 5}
            """.formatted(task, folder.resolve(run), model, folder.resolve(data)), all);
    }

    private static TrainingRun.Outcome train(FineTuneConfig config, Callback callback) {
        return new TrainingRun(config, Backends.tested(), callback).train();
    }

    /// Trains whole, and stopped and continued; the digests must be equal.
    private Evaluation twice(String task, Path model, String data, String... overrides) {
        TrainingRun.Outcome whole = train(config(task, "whole", model, data, overrides), new Watcher());
        train(config(task, "parts", model, data, overrides), Watcher.stopAfter(3));
        assertThat(train(config(task, "parts", model, data, overrides), new Watcher())
                        .digest())
                .isEqualTo(whole.digest());
        return whole.evaluation();
    }

    private static String word(int index) {
        return WORDS.get(index);
    }

    private void lines(String file, IntStream rows, java.util.function.IntFunction<String> line) throws IOException {
        Files.write(folder.resolve(file), rows.mapToObj(line).toList());
    }

    @Test
    void regression() throws IOException {
        lines(
                "size.jsonl",
                IntStream.range(0, 36),
                i -> "{\"text\": \"%s %s %s\", \"label\": %s}"
                        .formatted(word(i % 3), word(3 + i / 3 % 3), word(6 + i / 9 % 3), i % 3 - 1 + i / 9 * 0.1));
        Path model = model("bert");
        Evaluation.Numbers found = (Evaluation.Numbers) twice("regression", model, "size.jsonl", "train.steps=40");
        assertThat(found.spearman()).isGreaterThan(0.7);
        try (HuggingFace opened = HuggingFace.open(folder.resolve("whole"));
                Predictor predictor = Predictor.open(folder.resolve("whole"), Backends.tested())) {
            assertThat(opened.encoder().head()).isEqualTo(Head.of(Head.Kind.NUMBERS, 1));
            assertThat(predictor.predict(List.of("red cat runs")).getFirst())
                    .isInstanceOfSatisfying(
                            Prediction.OfNumber.class,
                            one -> assertThat(one.value()).isLessThan(0.2));
        }
        lines("size.jsonl", IntStream.range(0, 9), i -> "{\"text\": \"red " + i + "\", \"label\": \"tall\"}");
        assertThatThrownBy(() -> train(config("regression", "other", model, "size.jsonl"), new Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("column label expected a number, got \"tall\"");
    }

    @Test
    void tokenClassification() throws IOException {
        lines(
                "tags.jsonl",
                IntStream.range(0, 40),
                i -> "{\"tokens\": [\"%s\", \"%s\", \"%s\"], \"tags\": [\"COLOR\", \"ANIMAL\", \"O\"]}"
                        .formatted(word(i % 3), word(3 + i / 3 % 3), word(6 + i / 9 % 3)));
        Path model = model("distilbert-classification");
        Evaluation.Classes found = (Evaluation.Classes)
                twice("token-classification", model, "tags.jsonl", "data.class-weights=balanced", "train.steps=20");
        assertThat(found.confusion().accuracy()).isGreaterThan(0.9);
        try (Predictor predictor = Predictor.open(folder.resolve("whole"), Backends.tested())) {
            Prediction.OfWords words = (Prediction.OfWords)
                    predictor.predict(List.of("blue dog sits")).getFirst();
            assertThat(words.words()).containsExactly("blue", "dog", "sits");
            assertThat(words.labels()).containsExactly("COLOR", "ANIMAL", "O");
            assertThat(words.json("x")).startsWith("{\"name\":\"x\",\"words\":[{\"word\":\"blue\",\"label\":\"COLOR\"");
        }
        lines(
                "tags.jsonl",
                IntStream.range(0, 9),
                i -> "{\"tokens\": [\"red\", \"" + i + "\"], \"tags\": [\"O\", \"X\", \"O\"]}");
        assertThatThrownBy(() -> train(config("token-classification", "o", model, "tags.jsonl"), new Watcher()))
                .hasMessageContaining("2 words in tokens, but 3 labels in tags");
    }

    @Test
    void embedding() throws IOException {
        lines(
                "pairs.jsonl",
                IntStream.range(0, 27),
                i -> "{\"text\": \"%1$s %2$s\", \"pair\": \"%2$s %3$s %1$s\"}"
                        .formatted(word(i % 3), word(3 + i / 3 % 3), word(6 + i / 9)));
        Path model = model("bert");
        Evaluation.Neighbours found = (Evaluation.Neighbours)
                twice("embedding", model, "pairs.jsonl", "data.second=pair", "train.learning-rate=1e-3");
        assertThat(found.pairs()).isBetween(5, 7);
        try (TextEmbedder embedder = TextEmbedder.open(folder.resolve("whole"), Backends.tested())) {
            assertThat(embedder.embed("red cat")).hasSize(32);
        }
        assertThatThrownBy(() -> Predictor.open(folder.resolve("whole"), Backends.tested()))
                .hasMessageContaining("ask it with ingot embed");
        assertThatThrownBy(() -> train(config("embedding", "o", model, "pairs.jsonl"), new Watcher()))
                .hasMessageContaining("data.second is missing");
        assertThatThrownBy(() -> train(
                        config("embedding", "o", model, "pairs.jsonl", "data.second=pair", "train.micro-batch=2"),
                        new Watcher()))
                .hasMessageContaining("the batch stays whole");
    }

    @Test
    void languageModel() throws IOException {
        lines(
                "chat.jsonl",
                IntStream.range(0, 30),
                i -> i % 2 == 0
                        ? "{\"prompt\": \"%s %s\", \"answer\": \" %s\"}".formatted(word(i % 3), word(3), word(6))
                        : """
                        {"messages": [{"role": "user", "content": "%s %s"}, {"role": "assistant", "content": "%s"}]}
                        """.strip().formatted(word(i % 3), word(4 + i % 2), word(7)));
        lines("ab.jsonl", IntStream.range(0, 9), i -> "{\"text\": \"" + i + "\", \"b\": \"x\"}");
        Path model = model("gpt2");
        Watcher watcher = new Watcher();
        TrainingRun.Outcome outcome =
                train(config("language-model", "run", model, "chat.jsonl", "train.steps=20"), watcher);
        Evaluation.Answers found = (Evaluation.Answers) outcome.evaluation();
        assertThat(found.loss()).isLessThan(1.5);
        assertThat(watcher.steps.getFirst().loss()).isGreaterThan(3);
        try (HuggingFace opened = HuggingFace.open(folder.resolve("run"))) {
            assertThat(opened.type()).isEqualTo("gpt2");
        }
        assertThatThrownBy(() -> Predictor.open(folder.resolve("run"), Backends.tested()))
                .hasMessageContaining("ask it with ingot generate");
        assertThatThrownBy(() -> train(config("embedding", "o", model, "ab.jsonl", "data.second=b"), new Watcher()))
                .hasMessageContaining("needs an encoder of texts; model.from is gpt2 of");
    }

    @Test
    void longSequencesComeInPieces() {
        int[] ids = IntStream.range(0, 10).toArray();
        boolean[] learned = new boolean[10];
        learned[8] = true;
        List<AnswerTeacher.Sequence> pieces = AnswerTeacher.pieces(new AnswerTeacher.Sequence(ids, learned), 4);
        assertThat(pieces).hasSize(1);
        assertThat(pieces.getFirst().ids()).containsExactly(6, 7, 8, 9);
        java.util.Arrays.fill(learned, true);
        assertThat(AnswerTeacher.pieces(new AnswerTeacher.Sequence(ids, learned), 4))
                .extracting(piece -> piece.ids()[0])
                .containsExactly(0, 3, 6);
    }

    @Test
    void onnx() throws IOException {
        lines(
                "kind.csv",
                IntStream.range(-1, 36),
                i -> i < 0
                        ? "text,label"
                        : "%s %s %s,%s"
                                .formatted(
                                        word(i % 3),
                                        word(3 + i / 3 % 3),
                                        word(6 + i / 9 % 4),
                                        i % 3 == 0 ? "warm" : "cold"));
        Path model = model("bert");
        Files.delete(model.resolve("model.safetensors"));
        Path onnx = model.resolve("model.onnx");
        TrainingRun.Outcome whole = train(config("text-classification", "whole", onnx, "kind.csv"), new Watcher());
        FineTuneConfig streamed =
                config("text-classification", "streamed", onnx, "kind.csv", "memory=8GiB", "train.micro-batch=4");
        train(streamed, Watcher.stopAfter(4));
        assertThat(train(streamed, new Watcher()).digest()).isEqualTo(whole.digest());
        assertThat(((Evaluation.Classes) whole.evaluation()).confusion().labels())
                .containsExactly("cold", "warm");
        Files.delete(onnx);
        try (Predictor predictor = Predictor.open(folder.resolve("whole"), Backends.tested())) {
            List<Prediction> found = predictor.predict(List.of("red cat runs", "blue dog flies"));
            assertThat(found).hasSize(2).allSatisfy(one -> assertThat(one).isInstanceOf(Prediction.OfClass.class));
        }
        Path exported = folder.resolve("exported.onnx");
        try (PortableModel tuned = TunedOnnx.open(folder.resolve("whole")).orElseThrow()) {
            tuned.writeOnnx(exported, 16, Map.of());
        }
        try (OnnxModel again = OnnxModel.open(exported)) {
            Graph graph = OnnxImport.of(again, OnnxBinding.sizes(Map.of("batch", 3, "sequence", 16)))
                    .graph();
            assertThat(graph.output("logits").type()).isEqualTo(Type.f32(3, 2));
        }
    }
}
