package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.data.BytePairs;
import ingot.data.Corpus;
import ingot.data.Progress;
import ingot.formats.HuggingFace;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.nn.LanguageModel;
import ingot.store.RamStore;
import ingot.store.WeightStore;
import ingot.train.TextGenerator.Generation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Over the folder of a run of seconds, 16 tokens of context.
class TextGeneratorTest {
    @TempDir
    static Path folder;

    private static Path run;

    @BeforeAll
    static void train() {
        SmallRun.corpus(folder);
        SmallRun.train(SmallRun.config(folder, "run"), new SmallRun.Watcher());
        run = folder.resolve("run");
    }

    private record Text(String text, Generation generation) {}

    private static Text generate(String prompt, Sampling sampling) {
        StringBuilder text = new StringBuilder();
        try (TextGenerator generator = TextGenerator.open(run, Backends.tested())) {
            Generation generation = generator.generate(prompt, sampling, text::append);
            return new Text(text.toString(), generation);
        }
    }

    @Test
    void theSameSeedGivesTheSameText() {
        Text one = generate("stone ", new Sampling(1, 0, 0.9, 7, 20));
        assertThat(generate("stone ", new Sampling(1, 0, 0.9, 7, 20)).text()).isEqualTo(one.text());
        assertThat(generate("stone ", new Sampling(1, 0, 0.9, 8, 20)).text()).isNotEqualTo(one.text());
        assertThat(one.generation().tokens()).isEqualTo(20);
        assertThat(one.generation().ended()).isFalse();
        assertThat(one.generation().tokensPerSecond()).isPositive();
    }

    @Test
    void aGeneratorMayBeUsedAgain() {
        try (TextGenerator generator = TextGenerator.open(run, Backends.tested())) {
            StringBuilder first = new StringBuilder();
            StringBuilder second = new StringBuilder();
            generator.generate("river li", Sampling.greedy(12), first::append);
            generator.generate("river li", Sampling.greedy(12), second::append);
            assertThat(second).hasToString(first.toString());
            assertThat(generator.context()).isEqualTo(16);
        }
    }

    @Test
    void ofALongPromptTheEndIsRead() {
        String prompt = "window ".repeat(40);
        Text text = generate(prompt, Sampling.greedy(3));
        assertThat(text.generation().promptTokens()).isEqualTo(16);
        assertThat(text.generation().droppedTokens()).isPositive();
        assertThat(text.generation().tokens()).isEqualTo(3);
    }

    @Test
    void textGoesOnPastTheContext() {
        Text text = generate("north", Sampling.greedy(60));
        assertThat(text.generation().tokens()).isEqualTo(60);
        assertThat(text.text()).hasSizeGreaterThanOrEqualTo(60);
    }

    @Test
    void anEmptyPromptBeginsADocument() {
        Text text = generate("", Sampling.greedy(4));
        assertThat(text.generation().promptTokens()).isZero();
        assertThat(text.generation().tokens()).isEqualTo(4);
    }

    @Test
    void noTokensAreAskedFor() {
        assertThat(generate("stone", Sampling.greedy(0)).text()).isEmpty();
    }

    /// Chunks and single tokens give the bits of the whole sequence at once.
    @Test
    void decodingHasTheBitsOfTheWholeSequence() {
        int[] tokens = {5, 200, 33, 7, 99, 120, 64, 64, 3, 250, 11};
        try (HuggingFace files = HuggingFace.open(run);
                RamStore store = new RamStore()) {
            LanguageModel model = files.languageModel();
            files.weights().load(store);
            Map<String, Tensor> weights = new HashMap<>();
            for (WeightStore.Key key : store.keys()) {
                weights.put(key.tensor(), Tensor.over(store.type(key), store.pin(key)));
            }
            Tensor whole = Interpreter.run(
                            model.logitsGraph(1, tokens.length, false),
                            Map.of("tokens", Tensor.of(Shape.of(1, tokens.length), tokens)),
                            weights)
                    .get("logits");
            float[] all = whole.toFloats();
            float[] expected = Arrays.copyOfRange(all, all.length - model.vocabulary(), all.length);
            try (Decoder decoder = new Decoder(model, 16, Backends.tested(), store)) {
                assertThat(decoder.append(tokens)).isEqualTo(expected);
                decoder.reset();
                decoder.append(Arrays.copyOf(tokens, 4));
                decoder.append(tokens[4]);
                assertThat(decoder.append(Arrays.copyOfRange(tokens, 5, tokens.length)))
                        .isEqualTo(expected);
            }
        }
    }

    @Test
    void evaluatesItsHeldOutTextAndOthers() throws IOException {
        Evaluation.Text own = Evaluator.evaluate(run, "", List.of(), Backends.tested(), new SmallRun.Watcher());
        Evaluation.Text all = Evaluator.evaluate(
                run,
                folder.resolve("corpus").toString(),
                List.of("**/*.txt"),
                Backends.tested(),
                new SmallRun.Watcher());
        assertThat(own.bitsPerByte()).isBetween(0.1, 8.0);
        assertThat(all.tokens()).isGreaterThan(own.tokens());
        // the last evaluation of the run measured the same
        String last = Files.readAllLines(run.resolve("metrics.jsonl")).getLast();
        assertThat(last).contains("\"bits-per-byte\":" + own.bitsPerByte());
    }

    @Test
    void foldersThatAreNoModel() throws IOException {
        refused(folder.resolve("nowhere"), "model: no such folder");
        refused(folder.resolve("corpus"), "config.json");
        Path begun = Files.createDirectories(folder.resolve("begun"));
        Files.writeString(begun.resolve("ingot.yaml"), "");
        refused(begun, "has saved no model yet");
    }

    /// A Llama with a tokenizer of words, which begins every text with a token of its own.
    @Test
    void aModelFromElsewhere() throws IOException {
        ReferenceCase llama = ReferenceCase.orSkip("llama");
        Path copy = Files.createDirectories(folder.resolve("llama"));
        for (String file : List.of("config.json", "model.safetensors")) {
            Files.copy(llama.folder().resolve(file), copy.resolve(file), StandardCopyOption.REPLACE_EXISTING);
        }
        StringBuilder words = new StringBuilder();
        for (int id = 3; id < 160; id++) {
            words.append(", \"w").append(id).append("\": ").append(id);
        }
        Files.writeString(copy.resolve("tokenizer.json"), """
            {"version": "1.0", "truncation": null, "padding": null, "normalizer": null,
             "added_tokens": [
               {"id": 1, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
               {"id": 2, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
             "pre_tokenizer": {"type": "WhitespaceSplit"},
             "post_processor": {"type": "TemplateProcessing", "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
               "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
               "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
             "decoder": null, "model": {"type": "WordLevel", "unk_token": "<unk>",
               "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2%s}}}
            """.formatted(words));
        int[] prompt = {1, 7, 40, 99};
        StringBuilder text = new StringBuilder();
        try (TextGenerator generator = TextGenerator.open(copy, Backends.tested());
                HuggingFace files = HuggingFace.open(copy);
                RamStore store = new RamStore()) {
            Generation generation = generator.generate("w7 w40 w99", Sampling.greedy(6), text::append);
            assertThat(generation.promptTokens()).isEqualTo(4);
            files.weights().load(store);
            StringBuilder expected = new StringBuilder();
            try (Decoder decoder = new Decoder(files.languageModel(), 10, Backends.tested(), store)) {
                float[] logits = decoder.append(prompt);
                for (int i = 0; i < 6; i++) {
                    int token = Sampling.greedy(6).choose(logits, i);
                    if (files.endTokens().contains(token)) {
                        break;
                    }
                    expected.append(expected.isEmpty() ? "w" : " w").append(token);
                    logits = decoder.append(token);
                }
            }
            assertThat(text).hasToString(expected.toString());
        }
    }

    @Test
    void damagedFiles() throws IOException {
        Path copy = copy("damaged");
        Files.writeString(copy.resolve("config.json"), "{\"model_type\": \"lama\"}");
        refused(copy, "model_type 'lama' is not known; did you mean llama; supported: bert, ");
        Files.writeString(copy.resolve("config.json"), "{\"model_type\": ");
        refused(copy, "not valid JSON");
        Files.writeString(copy.resolve("config.json"), "{\"model_type\": \"gpt2\"}");
        refused(copy, "config.json: n_embd expected a whole number from 1 to 67108864, got nothing");
        String config = Files.readString(run.resolve("config.json"));
        Files.writeString(copy.resolve("config.json"), config.replace("gelu_new", "mish"));
        refused(copy, "activation_function is \"mish\"; supported: gelu, gelu_new,");
        Files.writeString(copy.resolve("config.json"), config.replaceAll("\"n_embd\" : 16", "\"n_embd\" : 32"));
        refused(copy, "where config.json makes it");
        Path cut = copy("cut");
        byte[] weights = Files.readAllBytes(cut.resolve("model.safetensors"));
        Files.write(cut.resolve("model.safetensors"), Arrays.copyOf(weights, weights.length - 100));
        refused(cut, "safetensors: ");
    }

    @Test
    void aTokenizerOfAnotherModel() throws IOException {
        Path copy = copy("mixed");
        BytePairs.train(Corpus.open(folder.resolve("corpus").toString(), List.of()), 300, Progress.NONE)
                .write(copy.resolve("tokenizer.json"));
        refused(copy, "they do not belong together");
        Files.delete(copy.resolve("tokenizer.json"));
        refused(copy, "tokenizer");
    }

    @Test
    void aFolderWithoutTextOfItsOwn() throws IOException {
        Path copy = copy("bare");
        Files.delete(copy.resolve("ingot.yaml"));
        assertThatThrownBy(() -> Evaluator.evaluate(copy, "", List.of(), Backends.tested(), new SmallRun.Watcher()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("--data");
    }

    private static void refused(Path path, String message) {
        assertThatThrownBy(() -> TextGenerator.open(path, Backends.tested()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(message);
    }

    private static Path copy(String name) throws IOException {
        Path copy = Files.createDirectories(folder.resolve(name));
        for (String file : List.of("config.json", "model.safetensors", "tokenizer.json", "ingot.yaml")) {
            Files.copy(run.resolve(file), copy.resolve(file), StandardCopyOption.REPLACE_EXISTING);
        }
        return copy;
    }
}
