package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Weights in somebody's files, read where they lie.
class BaseWeightsTest {
    /// More than one piece.
    private static final int MANY = 300_001;

    @TempDir
    Path folder;

    private static Tensor counting(int elements, float first) {
        Tensor tensor = Tensor.zeros(Type.f32(elements));
        for (int i = 0; i < elements; i++) {
            tensor.setFloat(i, first + i);
        }
        return tensor;
    }

    private static float[] counted(int elements, float first) {
        return counting(elements, first).data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    private Path write(String name, Map<String, Tensor> tensors) {
        Path file = folder.resolve(name);
        Safetensors.write(file, Map.of(), new LinkedHashMap<>(tensors));
        return file;
    }

    private static float[] read(BaseWeights base, String name, long start, int elements) {
        MemorySegment into = Arena.ofAuto().allocate(4L * elements, Blocks.SIZE);
        base.read(name, start, into);
        return into.toArray(ValueLayout.JAVA_FLOAT);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 1023, 4096, 262_144, MANY - 1})
    void readsAnyPartOfATensorThatLiesAnywhere(int start) {
        SequencedMap<String, Tensor> tensors = new LinkedHashMap<>();
        tensors.put("odd", counting(3, 0));
        tensors.put("w", counting(MANY, 7));
        tensors.put("last", counting(5, -2));
        try (BaseWeights base = BaseWeights.open(write("x.safetensors", tensors))) {
            float[] values = read(base, "w", start, MANY - start);
            assertThat(values).isEqualTo(counted(values.length, 7f + start));
            float[] array = new float[5];
            base.read("last", 0, MemorySegment.ofArray(array));
            assertThat(array).containsExactly(-2, -1, 0, 1, 2);
            assertThat(base.types().keySet()).containsExactly("odd", "w", "last");
        }
    }

    /// Then nothing is copied: pieces are read to where they belong.
    @Test
    void readsATensorAtAWholeBlock() {
        SequencedMap<String, Tensor> tensors = new LinkedHashMap<>();
        tensors.put("w", counting(MANY, 1));
        Path file = folder.resolve("aligned.safetensors");
        Safetensors.write(file, Map.of("p", ""), tensors);
        try (Safetensors opened = Safetensors.open(file)) {
            int padding = (int) (Blocks.SIZE - opened.offset("w") % Blocks.SIZE);
            Safetensors.write(file, Map.of("p", "x".repeat(padding)), tensors);
        }
        try (Safetensors opened = Safetensors.open(file);
                BaseWeights base = BaseWeights.open(file)) {
            assertThat(opened.offset("w") % Blocks.SIZE).isZero();
            float[] values = read(base, "w", 1024, MANY - 1024);
            assertThat(values).isEqualTo(counted(values.length, 1025));
        }
    }

    @Test
    void halvesBecomeF32() {
        Tensor bf16 = Tensor.zeros(new Type(DType.BF16, Shape.of(3)));
        Tensor f16 = Tensor.zeros(new Type(DType.F16, Shape.of(3)));
        float[] values = {1.5f, -0.0f, Float.NEGATIVE_INFINITY};
        for (int i = 0; i < 3; i++) {
            bf16.data().setAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, i, (short)
                    (Float.floatToRawIntBits(values[i]) >>> 16));
            f16.data().setAtIndex(ValueLayout.JAVA_SHORT_UNALIGNED, i, Float.floatToFloat16(values[i]));
        }
        try (BaseWeights base = BaseWeights.open(write("x.safetensors", Map.of("b", bf16, "f", f16)))) {
            base.check("b", Type.f32(3));
            assertThat(read(base, "b", 0, 3)).containsExactly(values);
            assertThat(read(base, "f", 1, 2)).containsExactly(values[1], values[2]);
        }
    }

    @Test
    void refusesShardsElsewhere() throws IOException {
        write("model-1-of-2.safetensors", Map.of("a", counting(4, 0)));
        Files.writeString(folder.resolve("model.safetensors.index.json"), """
            {"weight_map": {"a": "../model-1-of-2.safetensors"}}
            """);
        assertThatThrownBy(() -> BaseWeights.open(folder))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("weight_map.a expected the name of a file beside the index");
    }

    @Test
    void readsShards() throws IOException {
        write("model-1-of-2.safetensors", Map.of("a", counting(4, 0)));
        write("model-2-of-2.safetensors", Map.of("b", counting(4, 10)));
        Files.writeString(folder.resolve("model.safetensors.index.json"), """
            {"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}
            """);
        try (BaseWeights base = BaseWeights.open(folder)) {
            assertThat(read(base, "b", 1, 2)).containsExactly(11, 12);
            assertThat(base.file("a").getFileName()).hasToString("model-1-of-2.safetensors");
        }
        Files.writeString(folder.resolve("model.safetensors.index.json"), """
            {"weight_map": {"a": "model-1-of-2.safetensors", "c": "model-2-of-2.safetensors"}}
            """);
        assertThatThrownBy(() -> BaseWeights.open(folder))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("model-2-of-2.safetensors has no tensor c");
        Files.delete(folder.resolve("model-2-of-2.safetensors"));
        assertThatThrownBy(() -> BaseWeights.open(folder))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("no such file")
                .hasMessageContaining("model-2-of-2.safetensors");
    }

    @Test
    void refusesWhatIsNoBase() throws IOException {
        assertThatThrownBy(() -> BaseWeights.open(folder.resolve("nowhere")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("base: no such file or folder");
        assertThatThrownBy(() -> BaseWeights.open(folder))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("has no safetensors files");
        write("one.safetensors", Map.of("a", counting(4, 0)));
        write("two.safetensors", Map.of("a", counting(4, 0)));
        assertThatThrownBy(() -> BaseWeights.open(folder))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("have a tensor a");
        Files.writeString(folder.resolve("model.safetensors.index.json"), "{}");
        assertThatThrownBy(() -> BaseWeights.open(folder))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("has no weight_map");
    }

    @Test
    void refusesTensorsThatDoNotFit() {
        Path file = write("x.safetensors", Map.of("a", counting(4, 0), "i", Tensor.of(Shape.of(2), 1, 2)));
        try (BaseWeights base = BaseWeights.open(file)) {
            assertThatThrownBy(() -> base.check("b", Type.f32(4)))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("has no tensor b; it has 2");
            assertThatThrownBy(() -> base.check("a", Type.f32(2, 2)))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("has a as f32[4], expected f32[2, 2]");
            assertThatThrownBy(() -> base.check("i", Type.f32(2)))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("expected f32, f16 or bf16");
        }
    }

    @Test
    void otherFilesHaveOtherFingerprints() {
        Path file = write("x.safetensors", Map.of("a", counting(4, 0)));
        String before;
        try (BaseWeights base = BaseWeights.open(file)) {
            before = base.fingerprint();
        }
        write("x.safetensors", Map.of("b", counting(4, 0)));
        try (BaseWeights base = BaseWeights.open(file)) {
            assertThat(base.fingerprint()).isNotEqualTo(before);
        }
    }
}
