package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SourceTest {
    @TempDir
    Path folder;

    private Path archive(String... names) throws IOException {
        Path file = folder.resolve("models.jar");
        try (OutputStream out = Files.newOutputStream(file);
                ZipOutputStream zip = new ZipOutputStream(out)) {
            for (String name : names) {
                zip.putNextEntry(new ZipEntry(name));
                zip.write(name.getBytes(StandardCharsets.UTF_8));
            }
        }
        return file;
    }

    @Test
    void filesAndFoldersAreUnpackedOnce() throws IOException {
        Path jar = archive("a/model.onnx", "a/b/tokenizer.json", "other.txt");
        List<String> notices = new ArrayList<>();
        Path model = Source.file(jar + "!/a/model.onnx", folder.resolve("cache"), notices::add);
        assertThat(model).hasContent("a/model.onnx");
        assertThat(Source.file(jar + "!/a/model.onnx", folder.resolve("cache"), notices::add))
                .isEqualTo(model);
        assertThat(notices).containsExactly("unpacking a/model.onnx");
        Path all = Source.file(jar + "!/a/b/", folder.resolve("cache"), notices::add);
        assertThat(all.resolve("tokenizer.json")).hasContent("a/b/tokenizer.json");
        assertThat(model.resolveSibling("other.txt")).doesNotExist();
        assertThat(Source.file(jar.toString(), folder.resolve("cache"), notices::add))
                .isEqualTo(jar);
    }

    @Test
    void whatIsNotThereIsNamed() throws IOException {
        Path jar = archive("a/model.onnx");
        assertThatThrownBy(() -> Source.file(jar + "!/a/modle.onnx", folder.resolve("cache"), notice -> {}))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("there is no a/modle.onnx in it; did you mean a/model.onnx?");
        assertThatThrownBy(() -> Source.file(folder + "/models.zip!/x", folder, notice -> {}))
                .hasMessageContaining("no such file or folder");
        Path evil = archive("x/../../../evil.txt");
        assertThatThrownBy(() -> Source.file(evil + "!/x", folder.resolve("cache"), notice -> {}))
                .hasMessageContaining("lies outside of the archive");
        assertThat(folder.resolve("evil.txt")).doesNotExist();
    }
}
