package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.testkit.Reference;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What `ingot import` says of small ONNX files.
class ImportTest {
    @TempDir
    Path folder;

    @Test
    void aModelThatCanBeUsed() throws IOException {
        String file = file(node("first", "Relu", "x", "h"), node("second", "Tanh", "h", "y"));
        var shown = Invocation.of("import", file);
        assertThat(shown.err()).isEmpty();
        assertThat(shown.status()).isZero();
        assertThat(shown.out())
                .contains("ONNX, IR version 8, opset 17", "made by    test")
                .contains("inputs     x : FLOAT[batch, 3]", "operators  1 Relu, 1 Tanh");
        var built = Invocation.of("import", file, "--size", "batch=2");
        assertThat(built.status()).isZero();
        assertThat(built.out()).containsPattern("graph +\\d+ ops, weights: 0 tensors");
    }

    @Test
    void everyUnsupportedOperatorIsNamed() throws IOException {
        var shown = Invocation.of("import", file(node("first", "Frob", "x", "h"), node("second", "Nicate", "h", "y")));
        assertThat(shown.status()).isEqualTo(Main.FAILED);
        assertThat(shown.out()).contains("not supported: Frob at first", "not supported: Nicate at second");
    }

    @Test
    void damagedAndMissingFiles() throws IOException {
        Path damaged = Files.write(folder.resolve("damaged.onnx"), new byte[] {0x3A, 0x7F, 1});
        var shown = Invocation.of("import", damaged.toString());
        assertThat(shown.status()).isEqualTo(Main.FAILED);
        assertThat(shown.err()).contains("error: onnx: ", "needs 127 bytes, 1 are left", "damaged.onnx");
        assertThat(Invocation.of("import", folder.resolve("none.onnx").toString())
                        .err())
                .contains("no such file or folder");
    }

    @Test
    void aFolderAndWhatItCosts() {
        Path reference = Reference.orSkip("bert-classification");
        var shown = Invocation.of("import", reference.toString(), "--batch", "2");
        assertThat(shown.err()).isEmpty();
        assertThat(shown.status()).isZero();
        assertThat(shown.out())
                .contains("Hugging Face folder, bert (BertForSequenceClassification)", "3 labels", "57 tensors")
                .contains("bert.encoder.layer.*.attention.self.query.weight f32[32, 32] × 3")
                .contains("a step with Adam on tokens i32[2, 24], mask bool[2, 24]", "moments of Adam 229 KiB");
        assertThat(Invocation.of("import", reference.toString(), "--weights", "--no-cost")
                        .out())
                .contains("bert.encoder.layer.2.attention.self.query.weight f32[32, 32]")
                .doesNotContain("Adam");
    }

    @Test
    void aFolderThatDoesNotFitItsConfiguration() throws IOException {
        Path reference = Reference.orSkip("bert-classification");
        Files.copy(reference.resolve("model.safetensors"), folder.resolve("model.safetensors"));
        Files.writeString(
                folder.resolve("config.json"),
                Files.readString(reference.resolve("config.json"))
                        .replaceFirst("\"intermediate_size\": \\d+", "\"intermediate_size\": 50"));
        var shown = Invocation.of("import", folder.toString());
        assertThat(shown.status()).isEqualTo(Main.FAILED);
        assertThat(shown.out()).contains("57 tensors", "not usable: ", "9 of another type");
    }

    @Test
    void weightsAlone() {
        Path reference = Reference.orSkip("gpt2");
        var shown =
                Invocation.of("import", reference.resolve("model.safetensors").toString());
        assertThat(shown.status()).isZero();
        assertThat(shown.out()).contains("safetensors", "28 tensors", "config.json describes: import its folder");
    }

    // ---- protobuf by hand: field number and wire type, length, content

    private String file(byte[]... nodes) throws IOException {
        byte[] dims = join(bytes(1, text(2, "batch")), bytes(1, new byte[] {8, 3}));
        byte[] type = bytes(1, join(new byte[] {8, 1}, bytes(2, dims)));
        byte[] graph = {};
        for (byte[] node : nodes) {
            graph = join(graph, bytes(1, node));
        }
        graph = join(
                graph, bytes(11, join(text(1, "x"), bytes(2, type))), bytes(12, join(text(1, "y"), bytes(2, type))));
        byte[] model = join(new byte[] {8, 8}, text(2, "test"), bytes(7, graph), bytes(8, new byte[] {16, 17}));
        return Files.write(folder.resolve("model.onnx"), model).toString();
    }

    private static byte[] node(String name, String operator, String input, String output) {
        return join(text(1, input), text(2, output), text(3, name), text(4, operator));
    }

    private static byte[] text(int field, String value) {
        return bytes(field, value.getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] bytes(int field, byte[] value) {
        return join(new byte[] {(byte) (field << 3 | 2), (byte) value.length}, value);
    }

    private static byte[] join(byte[]... parts) {
        var out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }
}
