package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OnnxReaderTest {
    private static final int FLOAT = 1;

    @TempDir
    private Path folder;

    @Test
    void namesAndSizesAreThoseOfTheFile() {
        try (OnnxImport imported = imported(small(), OnnxBinding.sizes(Map.of("batch", 2)))) {
            assertThat(imported.types()).isEqualTo(Map.of("w", Type.f32(3, 2)));
            assertThat(imported.graph().outputs()).containsOnlyKeys("y");
            assertThat(imported.graph().scope(imported.graph().output("y"))).isEqualTo("second");
            Tensor x = Tensor.of(Shape.of(2, 3), 1f, 2f, 3f, -1f, -2f, -3f);
            Tensor y = Interpreter.run(imported.graph(), Map.of("x", x), OnnxRun.weights(imported))
                    .get("y");
            assertThat(y.toFloats()).containsExactly(4, 5, 0, 0);
        }
    }

    @Test
    void openSizesAreNamedTogether() {
        assertThatThrownBy(() -> imported(small(), OnnxBinding.NONE))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("sizes must be given")
                .hasMessageContaining("batch");
    }

    @Test
    void unsupportedOperatorsAreNamedTogether() {
        OnnxBytes graph = new OnnxBytes()
                .message(1, OnnxBytes.node("a", "Frobnicate", "p", "x"))
                .message(1, OnnxBytes.node("b", "Relu", "q", "p"))
                .message(1, OnnxBytes.node("c", "Frobnicate", "r", "q"))
                .message(1, OnnxBytes.node("d", "StringNormalizer", "y", "r"))
                .message(11, OnnxBytes.port("x", FLOAT, 2))
                .message(12, OnnxBytes.port("y", FLOAT, 2));
        assertThatThrownBy(() -> imported(OnnxBytes.model(graph), OnnxBinding.NONE))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("Frobnicate at a, c")
                .hasMessageContaining("StringNormalizer at d");
    }

    @Test
    void cyclesAreRefused() {
        OnnxBytes graph = new OnnxBytes()
                .message(1, OnnxBytes.node("a", "Add", "p", "x", "q"))
                .message(1, OnnxBytes.node("b", "Relu", "q", "p"))
                .message(11, OnnxBytes.port("x", FLOAT, 2))
                .message(12, OnnxBytes.port("q", FLOAT, 2));
        assertThatThrownBy(() -> imported(OnnxBytes.model(graph), OnnxBinding.NONE))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("node a (Add)")
                .hasMessageContaining("cycle");
    }

    @Test
    void wrongFilesAreRefused() {
        refused(new byte[0], "no graph");
        refused("PK\3\4 this is a zip".getBytes(java.nio.charset.StandardCharsets.UTF_8), "no ONNX model");
        refused(new OnnxBytes().claim(7, 10_000_000_000L).toBytes(), "10000000000 bytes");
        refused(new OnnxBytes().claim(7, -1).toBytes(), "18446744073709551615 bytes");
        refused(
                OnnxBytes.model(new OnnxBytes().message(5, OnnxBytes.tensor("w", 99, new byte[4], 1))),
                "type number 99");
        refused(
                OnnxBytes.model(new OnnxBytes().message(5, OnnxBytes.tensor("w", FLOAT, new byte[4], -1))),
                "tensor w has the shape [-1]");
        refused(
                OnnxBytes.model(new OnnxBytes()
                        .message(5, OnnxBytes.tensor("w", FLOAT, new byte[4], 1 << 30, 1 << 30, 1 << 30))),
                "tensor w has the shape");
    }

    @Test
    void nestedGraphsEndSomewhere() {
        OnnxBytes graph = new OnnxBytes();
        for (int i = 0; i < 100; i++) {
            OnnxBytes attribute =
                    new OnnxBytes().text(1, "body").message(6, graph).integer(20, 5);
            graph = new OnnxBytes().message(1, new OnnxBytes().text(4, "Loop").message(5, attribute));
        }
        refused(OnnxBytes.model(graph), "nested deeper");
    }

    /// A hundred bytes that declare ten billion elements.
    @Test
    void declaredSizesCostNothing() {
        OnnxBytes graph = new OnnxBytes()
                .message(5, OnnxBytes.tensor("w", FLOAT, new byte[4], 100_000, 100_000))
                .message(1, OnnxBytes.node("a", "Add", "y", "x", "w"))
                .message(11, OnnxBytes.port("x", FLOAT, 1))
                .message(12, OnnxBytes.port("y", FLOAT, 100_000, 100_000));
        try (OnnxImport imported = imported(OnnxBytes.model(graph), OnnxBinding.NONE)) {
            assertThatThrownBy(() -> imported.read("w", java.lang.foreign.MemorySegment.NULL))
                    .isInstanceOf(IllegalArgumentException.class);
            OnnxTensor tensor = new OnnxTensor(
                    "w",
                    OnnxType.FLOAT,
                    java.util.List.of(100_000L, 100_000L),
                    new OnnxTensor.Data.Raw(java.lang.foreign.MemorySegment.ofArray(new byte[4])));
            assertThatThrownBy(() -> tensor.read(OnnxTensor.Neighbours.none()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("needs 40000000000 bytes, the file has 4");
        }
    }

    @Test
    void externalDataStayInTheFolder() throws IOException {
        Files.createDirectory(folder.resolve("model"));
        Files.write(folder.resolve("secret.bin"), OnnxBytes.floats(7, 7));
        Files.write(folder.resolve("model/data.bin"), OnnxBytes.floats(0, 1, 2));
        assertThat(external("data.bin", "4", "8").toFloats()).containsExactly(1, 2);
        for (String location : new String[] {"../secret.bin", "/etc/hostname", "a/../../secret.bin"}) {
            assertThatThrownBy(() -> external(location, "0", "8"))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("outside of the model's folder");
        }
        Files.createSymbolicLink(folder.resolve("model/link.bin"), folder.resolve("secret.bin"));
        assertThatThrownBy(() -> external("link.bin", "0", "8"))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("link out of the model's folder");
        assertThatThrownBy(() -> external("data.bin", "8", "8"))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("which has 12");
        assertThatThrownBy(() -> external("data.bin", "-4", "8")).isInstanceOf(IngotException.class);
        assertThatThrownBy(() -> external("missing.bin", "0", "8"))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("no such file");
    }

    private Tensor external(String location, String offset, String length) throws IOException {
        OnnxBytes tensor = OnnxBytes.tensor("w", FLOAT, null, 2)
                .message(13, new OnnxBytes().text(1, "location").text(2, location))
                .message(13, new OnnxBytes().text(1, "offset").text(2, offset))
                .message(13, new OnnxBytes().text(1, "length").text(2, length))
                .integer(14, 1);
        OnnxBytes graph = new OnnxBytes()
                .message(5, tensor)
                .message(1, OnnxBytes.node("a", "Add", "y", "x", "w"))
                .message(11, OnnxBytes.port("x", FLOAT, 2))
                .message(12, OnnxBytes.port("y", FLOAT, 2));
        Path file = folder.resolve("model/model.onnx");
        Files.write(file, OnnxBytes.model(graph));
        try (OnnxImport imported = OnnxImport.of(OnnxModel.open(file), OnnxBinding.NONE)) {
            return OnnxRun.weights(imported).get("w");
        }
    }

    /// Every mutation is read, or refused with our own exception, within a bound of memory.
    @Test
    void mutatedFilesAreReadOrRefused() throws IOException {
        byte[] model = small();
        Random random = new Random(5);
        Path file = folder.resolve("mutated.onnx");
        int refused = 0;
        int rounds = 3000;
        for (int round = 0; round < rounds; round++) {
            byte[] bytes = mutated(model, random);
            Files.write(file, bytes);
            long before = Mutations.allocated();
            try (OnnxImport imported = OnnxImport.of(OnnxModel.open(file), OnnxBinding.sizes(Map.of("batch", 2)))) {
                for (Map.Entry<String, Type> type : imported.types().entrySet()) {
                    if (type.getValue().bytes() < 1 << 16) {
                        imported.read(
                                type.getKey(), Tensor.zeros(type.getValue()).data());
                    }
                }
            } catch (IngotException e) {
                refused++;
            }
            assertThat(Mutations.allocated() - before).as("round %s", round).isLessThan(32 << 20);
        }
        assertThat(refused).isBetween(rounds / 4, rounds - 1);
    }

    private static byte[] mutated(byte[] model, Random random) {
        byte[] bytes = model.clone();
        if (random.nextInt(4) == 0) {
            return java.util.Arrays.copyOf(bytes, random.nextInt(bytes.length));
        }
        int changes = 1 + random.nextInt(3);
        for (int i = 0; i < changes; i++) {
            int at = random.nextInt(bytes.length);
            bytes[at] = (byte)
                    switch (random.nextInt(4)) {
                        case 0 -> bytes[at] ^ 1 << random.nextInt(8);
                        case 1 -> 0xFF;
                        case 2 -> 0;
                        default -> random.nextInt(256);
                    };
        }
        return bytes;
    }

    /// y = relu(x · w), x [batch, 3], w [3, 2].
    private static byte[] small() {
        OnnxBytes graph = new OnnxBytes()
                .message(1, OnnxBytes.node("first", "MatMul", "h", "x", "w"))
                .message(1, OnnxBytes.node("second", "Relu", "y", "h"))
                .text(2, "small")
                .message(5, OnnxBytes.tensor("w", FLOAT, OnnxBytes.floats(1, 0, 0, 1, 1, 1), 3, 2))
                .message(11, OnnxBytes.port("x", FLOAT, "batch", 3))
                .message(12, OnnxBytes.port("y", FLOAT, "batch", 2));
        return OnnxBytes.model(graph);
    }

    private OnnxImport imported(byte[] bytes, OnnxBinding binding) {
        Path file = folder.resolve("model.onnx");
        try {
            Files.write(file, bytes);
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        return OnnxImport.of(OnnxModel.open(file), binding);
    }

    private void refused(byte[] bytes, String message) {
        assertThatThrownBy(() -> imported(bytes, OnnxBinding.NONE))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(message);
    }
}
