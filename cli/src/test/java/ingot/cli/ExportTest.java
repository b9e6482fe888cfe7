package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.testkit.Reference;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// `ingot export` from and to every layout. That bits stay is shown where the formats are tested.
class ExportTest {
    @TempDir
    Path folder;

    @Test
    void aFolderAsOnnxAndItsWeightsBack() throws IOException {
        String model = Reference.orSkip("bert").toString();
        Path onnx = folder.resolve("bert.onnx");
        var shown = Invocation.of("export", model, "--to", onnx.toString());
        assertThat(shown.err()).isEmpty();
        assertThat(shown.status()).isZero();
        assertThat(shown.out()).contains("bert.onnx", "Open sizes: batch, sequence.");

        Path tensors = folder.resolve("back.safetensors");
        assertThat(Invocation.of("export", onnx.toString(), "--to", tensors.toString())
                        .status())
                .isZero();
        assertThat(Files.size(tensors)).isGreaterThan(90_000);
        assertThat(Invocation.of("import", tensors.toString()).out())
                .contains("encoder.layer.*.attention.self.query.weight f32[32, 32] × 2");
        assertThat(Invocation.of("export", onnx.toString(), "--to", "onnx", "--size", "sequence=8")
                        .status())
                .isZero();
        assertThat(folder.resolve("model.onnx")).exists();
    }

    @Test
    void aSizeThatIsFixed() {
        String model = Reference.orSkip("bert").toString();
        String onnx = folder.resolve("bert.onnx").toString();
        var shown = Invocation.of("export", model, "--to", onnx, "--size", "sequence=7");
        assertThat(shown.out()).contains("Open sizes: batch.");
        assertThat(Invocation.of("import", onnx, "--no-cost").out()).contains("input_ids : INT64[batch, 7]");
        assertThat(Invocation.of("export", model, "--to", onnx, "--size", "time=7")
                        .err())
                .contains("the model has no size time; it has batch, sequence");
    }

    @Test
    void aFolderAgain() {
        Path again = folder.resolve("again");
        Path once = folder.resolve("once");
        assertThat(Invocation.of("export", Reference.orSkip("gpt2").toString(), "--to", once.toString())
                        .status())
                .isZero();
        assertThat(Invocation.of("export", once.toString(), "--to", again.toString())
                        .status())
                .isZero();
        assertThat(again.resolve("model.safetensors")).hasSameBinaryContentAs(once.resolve("model.safetensors"));
        assertThat(again.resolve("config.json")).hasSameBinaryContentAs(once.resolve("config.json"));
    }

    @Test
    void whatCannotBeWritten() {
        Path model = Reference.orSkip("gpt2");
        assertThat(Invocation.of("export", model.toString()).err()).contains("name a layout with --to onnx");
        assertThat(Invocation.of(
                                "export",
                                model.resolve("model.safetensors").toString(),
                                "--to",
                                folder.resolve("a.onnx").toString())
                        .err())
                .contains("weights without a model");
        assertThat(Invocation.of("export", model.toString(), "--to", model.toString())
                        .err())
                .contains("name another");
    }
}
