package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/// What users do wrong, and what they are told: the transcripts in `src/test/must-fail`.
///
/// A transcript is a list of commands, each after `$`, with all they print to stderr and their exit status. `{}` is a
/// folder that holds what the commands need; `…` at the end of a line stands for the rest of it, which the system words
/// differently from machine to machine.
class MustFailTest {
    private static final Path TRANSCRIPTS = Path.of("src", "test", "must-fail");
    private static final String CONFIG = """
        run: '%s'
        threads: 1
        model: {layers: 1, width: 8, heads: 2, context: 16}
        data: {corpus: '%s', include: ['*.txt'], held-out: 0.3}
        tokenizer: {vocabulary: 260}
        train: {steps: 2, batch: 2}
        """;

    @TempDir
    static Path folder;

    private static StoreHolder busy;

    @BeforeAll
    static void prepare() throws IOException {
        Path texts = Files.createDirectories(folder.resolve("texts"));
        for (int i = 0; i < 12; i++) {
            Files.writeString(texts.resolve(i + ".txt"), ("Text number " + i + ", all of it.\n").repeat(20));
        }
        Files.createDirectories(folder.resolve("empty"));
        Files.writeString(folder.resolve("good.yaml"), CONFIG.formatted(folder.resolve("run"), texts));
        Files.write(folder.resolve("latin.yaml"), "run: caf\u00e9\n".getBytes(StandardCharsets.ISO_8859_1));
        Files.writeString(folder.resolve("broken.yaml"), "model: {layers: 2\ndata: [\n");
        Files.writeString(folder.resolve("list.yaml"), "- one\n- two\n");
        Files.writeString(folder.resolve("nothing.yaml"), "");
        assertThat(Invocation.of("train", folder.resolve("good.yaml").toString()))
                .matches(run -> run.status() == 0, "trains");

        Path cut = copy("cut");
        byte[] model = Files.readAllBytes(cut.resolve("model.safetensors"));
        Files.write(cut.resolve("model.safetensors"), Arrays.copyOf(model, model.length - 100));
        Files.writeString(copy("garbled").resolve("config.json"), "{ this is not");
        Files.writeString(copy("bert").resolve("config.json"), "{\"model_type\": \"berta\"}");
        Path wide = copy("wide");
        Files.writeString(
                wide.resolve("config.json"),
                Files.readString(wide.resolve("config.json")).replaceFirst("\"n_embd\" : 8", "\"n_embd\" : 16"));
        Files.delete(copy("mute").resolve("tokenizer.json"));
        Files.writeString(copy("babel").resolve("tokenizer.json"), "{}");
        Files.delete(copy("torn").resolve("resume/step-2/state.safetensors"));
        Path flipped = copy("flipped").resolve("resume/step-2/state.safetensors");
        byte[] state = Files.readAllBytes(flipped);
        state[state.length - 1] ^= 1;
        Files.write(flipped, state);
        prepareStores();
    }

    /// Runs with their state on disk, and what can befall it.
    private static void prepareStores() throws IOException {
        assertThat(Invocation.of(
                        "train",
                        folder.resolve("good.yaml").toString(),
                        "run=" + folder.resolve("streamed"),
                        "--memory",
                        "4GiB"))
                .matches(run -> run.status() == 0, "trains");
        StoreFiles.flipWeight(copy("streamed", "damaged"));
        Path headless = copy("streamed", "headless");
        StoreFiles.flipSuperblock(headless, 0);
        StoreFiles.flipSuperblock(headless, 1);
        Files.writeString(StoreFiles.state(copy("streamed", "foreign")), "This is no store.\n".repeat(1000));
        try (FileChannel state =
                FileChannel.open(StoreFiles.state(copy("streamed", "short")), StandardOpenOption.WRITE)) {
            state.truncate(state.size() - 4096);
        }
        Files.writeString(Files.createDirectories(folder.resolve("blocked")).resolve("store"), "a file");
        busy = StoreHolder.hold(copy("streamed", "busy"));
    }

    @AfterAll
    static void letGo() throws IOException {
        busy.close();
    }

    private static Path copy(String name) throws IOException {
        return copy("run", name);
    }

    private static Path copy(String original, String name) throws IOException {
        Path to = folder.resolve(name);
        Path from = folder.resolve(original);
        try (Stream<Path> files = Files.walk(from)) {
            for (Path file : files.toList()) {
                Files.copy(file, to.resolve(from.relativize(file).toString()));
            }
        }
        return to;
    }

    private record Case(String command, List<String> expected) {}

    @TestFactory
    Stream<DynamicTest> whatUsersAreTold() throws IOException {
        List<Case> cases = new ArrayList<>();
        try (Stream<Path> transcripts = Files.list(TRANSCRIPTS)) {
            for (Path transcript : transcripts.sorted().toList()) {
                for (String line : Files.readAllLines(transcript)) {
                    if (line.startsWith("$ ")) {
                        cases.add(new Case(line.substring(2), new ArrayList<>()));
                    } else if (!line.isBlank() && !line.startsWith("#")) {
                        cases.getLast().expected().add(line);
                    }
                }
            }
        }
        assertThat(cases).hasSizeGreaterThan(40);
        return cases.stream().map(each -> dynamicTest(each.command(), () -> check(each)));
    }

    private static void check(Case each) {
        String[] words = words(each.command().replace("{}", folder.toString()));
        assertThat(words[0]).isEqualTo("ingot");
        Invocation run = Invocation.of(Arrays.copyOfRange(words, 1, words.length));
        List<String> got = new ArrayList<>(
                run.err().replace(folder.toString(), "{}").lines().toList());
        got.add(String.format(Locale.ROOT, "exit %d", run.status()));
        assertThat(run.status()).as("it must fail, and not by a bug: %s", got).isIn(1, 2);
        for (int i = 0; i < each.expected().size(); i++) {
            String line = each.expected().get(i);
            if (line.endsWith("…") && i < got.size()) {
                String begin = line.substring(0, line.length() - 1);
                assertThat(got.get(i)).startsWith(begin);
                got.set(i, line);
            }
        }
        assertThat(got).isEqualTo(each.expected());
    }

    /// Splits at spaces outside of single quotes.
    private static String[] words(String command) {
        List<String> words = new ArrayList<>();
        for (String part : command.split(" (?=(?:[^']*'[^']*')*[^']*$)")) {
            words.add(part.replace("'", ""));
        }
        return words.toArray(String[]::new);
    }
}
