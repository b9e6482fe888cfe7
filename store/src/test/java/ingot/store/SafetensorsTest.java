package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SafetensorsTest {
    @TempDir
    Path folder;

    @Test
    void readsWhatItWrote() {
        SequencedMap<String, Tensor> tensors = new LinkedHashMap<>();
        tensors.put("a", Tensor.of(Shape.of(2, 3), 1, 2, 3, 4, 5, Float.NaN));
        tensors.put("empty", Tensor.zeros(Type.f32(0, 7)));
        tensors.put("scalar", Tensor.scalar(42));
        Path file = folder.resolve("x.safetensors");
        Safetensors.write(file, Map.of("format", "pt"), tensors);
        try (Safetensors read = Safetensors.open(file)) {
            assertThat(read.metadata()).containsExactly(Map.entry("format", "pt"));
            assertThat(read.tensors().keySet()).containsExactly("a", "empty", "scalar");
            tensors.forEach((name, tensor) -> assertThat(read.read(name)).isEqualTo(tensor));
            assertThatThrownBy(() -> read.read("b"))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("has no tensor b; it has 3, the first is a");
        }
    }

    @Test
    void startsTensorsAtMultiplesOfEight() throws IOException {
        SequencedMap<String, Tensor> tensors = new LinkedHashMap<>();
        tensors.put("w", Tensor.scalar(1f));
        Path file = folder.resolve("x.safetensors");
        Safetensors.write(file, Map.of(), tensors);
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
        assertThat(bytes.getLong(0) % 8).isZero();
        assertThat(bytes.capacity()).isEqualTo((int) (8 + bytes.getLong(0) + 4));
    }

    @Test
    void refusesATruncatedFile() throws IOException {
        SequencedMap<String, Tensor> tensors = new LinkedHashMap<>();
        tensors.put("w", Tensor.zeros(Type.f32(100)));
        Path file = folder.resolve("x.safetensors");
        Safetensors.write(file, Map.of(), tensors);
        byte[] whole = Files.readAllBytes(file);
        for (int size : new int[] {0, 7, 8, 20, whole.length - 1}) {
            Files.write(file, Arrays.copyOf(whole, size));
            assertThatThrownBy(() -> Safetensors.open(file))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("not usable");
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
        [1]                                                                       | no JSON object
        {"a":                                                                     | no JSON
        {"a":{"dtype":"F32","shape":[2],"data_offsets":[0,16]}}                   | f32[2] = 8 bytes, it has 16
        {"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}}                    | dtype 'F31', expected one of
        {"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}                   | has the shape [-2]
        {"a":{"dtype":"F32","shape":[2147483647,2147483647,8],"data_offsets":[0,8]}} | has the shape
        {"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}                   | lies at bytes [-8,0]
        {"a":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}                  | truncated or corrupt
        {"a":{"dtype":"F32","shape":[2]}}                                         | lacks dtype, shape or data_offsets
        {"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}} | tensor b overlaps
        """)
    void refusesAWrongHeader(String header, String message) throws IOException {
        byte[] json = header.strip().getBytes(StandardCharsets.UTF_8);
        ByteBuffer file = ByteBuffer.allocate(8 + json.length + 16).order(ByteOrder.LITTLE_ENDIAN);
        file.putLong(json.length).put(json);
        Path path = folder.resolve("wrong.safetensors");
        Files.write(path, file.array());
        assertThatThrownBy(() -> Safetensors.open(path))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(message)
                .hasMessageContaining("wrong.safetensors");
    }

    @Test
    void refusesAHugeHeaderWithoutAllocatingIt() throws IOException {
        ByteBuffer file = ByteBuffer.allocate(100).order(ByteOrder.LITTLE_ENDIAN);
        file.putLong(10L << 30);
        Path path = folder.resolve("huge.safetensors");
        Files.write(path, file.array());
        assertThatThrownBy(() -> Safetensors.open(path))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("header would have 10737418240 bytes, the file has 100");
    }

    @Test
    void keepsTheOldFileWhenWritingFails() throws IOException {
        SequencedMap<String, Tensor> tensors = new LinkedHashMap<>();
        tensors.put("w", Tensor.scalar(1f));
        Path file = folder.resolve("x.safetensors");
        Safetensors.write(file, Map.of(), tensors);
        byte[] before = Files.readAllBytes(file);
        Files.createDirectory(folder.resolve("x.safetensors.partial"));
        assertThatThrownBy(() -> Safetensors.write(file, Map.of("new", "yes"), tensors))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("cannot write")
                .hasMessageContaining("the previous file, if any, is untouched");
        assertThat(Files.readAllBytes(file)).isEqualTo(before);
    }
}
