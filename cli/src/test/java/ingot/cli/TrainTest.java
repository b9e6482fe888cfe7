package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TrainTest {
    private static final Pattern DIGEST = Pattern.compile("SHA-256 of weights, moments and losses: (\\p{XDigit}{64})");

    @TempDir
    Path folder;

    private Path config;

    @BeforeEach
    void prepare() throws IOException {
        Path texts = Files.createDirectories(folder.resolve("texts"));
        for (int i = 0; i < 12; i++) {
            Files.writeString(texts.resolve("A" + i + ".java"), "public class A" + i + " {}\n".repeat(40));
        }
        config = Files.writeString(folder.resolve("a.yaml"), """
            run: '%s'
            threads: 1
            model: {layers: 1, width: 8, heads: 2, context: 16}
            data: {corpus: '%s', held-out: 0.3}
            tokenizer: {vocabulary: 260}
            train: {steps: 3, batch: 2, learning-rate: 1e-2, evaluate-every: 2, checkpoint-every: 2}
            """.formatted(folder.resolve("run"), texts));
    }

    private static String digest(Invocation run) {
        var found = DIGEST.matcher(run.out());
        assertThat(found.find()).as(run.out() + run.err()).isTrue();
        return found.group(1);
    }

    @Test
    void trainsAndSaysWhatToDoNext() {
        var run = Invocation.of("train", config.toString());
        String path = folder.resolve("run").toString();
        assertThat(run.err()).isEmpty();
        assertThat(run.status()).isZero();
        assertThat(run.out())
                .contains("reading " + folder.resolve("texts") + " ...", "training the tokenizer ...", "compiling ...")
                .contains("step 1/3", "step 3/3", "step 2 held out: ", "step 2 checkpoint written")
                .containsPattern("Held-out text: \\d\\.\\d{3} bits per byte")
                .contains("3 completions:", "    public static boolean is")
                .contains("generate " + path + " --prompt", "eval " + path, "train " + config)
                .contains("from_pretrained(\"" + path + "\")");
        assertThat(folder.resolve("run/model.safetensors")).exists();

        var again = Invocation.of("train", config.toString());
        assertThat(again.status()).isZero();
        assertThat(again.out()).contains("continued after step 3").doesNotContain("step 1/3");
        assertThat(digest(again)).isEqualTo(digest(run));

        var byFolder = Invocation.of("train", path);
        assertThat(digest(byFolder)).isEqualTo(digest(run));

        var text = Invocation.of("generate", path, "--prompt", "public", "--max-tokens", "9", "--seed", "7");
        assertThat(text.err()).isEmpty();
        assertThat(text.out()).startsWith("public").hasSizeGreaterThan("public".length() + 1);
        assertThat(Invocation.of(
                        "generate", path, "--prompt", "public", "--max-tokens", "9", "--seed", "7", "--threads", "2"))
                .isEqualTo(text);

        var measured = Invocation.of("eval", path);
        assertThat(measured.status()).isZero();
        var bits = Pattern.compile("\\d\\.\\d{3} bits per byte").matcher(run.out());
        String last = "";
        while (bits.find()) {
            last = bits.group();
        }
        assertThat(measured.out()).contains(last);
        assertThat(Invocation.of("eval", path, "--data", config.toString()).out())
                .contains("bits per byte");
    }

    @Test
    void settingsOnTheCommandLineWin() {
        var run = Invocation.of("train", config.toString(), "run=" + folder.resolve("other"), "train.steps=1");
        assertThat(run.out()).contains("step 1/1").contains("run=" + folder.resolve("other"));
        assertThat(folder.resolve("other/model.safetensors")).exists();
        assertThat(folder.resolve("run")).doesNotExist();
    }
}
