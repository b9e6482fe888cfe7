package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.train.RunConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PromptsTest {
    @TempDir
    Path folder;

    private List<String> prompts() {
        return Prompts.of(RunConfig.parse("data: {corpus: '" + folder + "', held-out: 0.4}", List.of()));
    }

    @Test
    void javaForJava() throws IOException {
        for (int i = 0; i < 9; i++) {
            Files.writeString(folder.resolve(i + ".java"), "class A" + i + " {}\n");
        }
        Files.writeString(folder.resolve("notes.txt"), "some words\n");
        assertThat(prompts()).hasSize(3).anyMatch(prompt -> prompt.contains("public static"));
    }

    @Test
    void heldOutBeginningsForOtherText() throws IOException {
        for (int i = 0; i < 20; i++) {
            Files.writeString(folder.resolve(i + ".txt"), "Chapter " + i + "\n\nIt was a dark and stormy night.\n");
        }
        assertThat(prompts())
                .hasSize(3)
                .doesNotHaveDuplicates()
                .allMatch(prompt -> prompt.matches("Chapter \\d+ It was a dark"));
    }

    @Test
    void textWithoutAnyWords() throws IOException {
        for (int i = 0; i < 20; i++) {
            Files.writeString(folder.resolve(i + ".txt"), "\n\n");
        }
        assertThat(prompts()).containsExactly("The");
    }
}
