package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Files that PyTorch 1.13 wrote by `make_state_dicts.py`.
class StateDictTest {
    @TempDir
    Path folder;

    private Path file(String name) throws IOException {
        Path copy = folder.resolve(name);
        try (InputStream in = StateDictTest.class.getResourceAsStream(name)) {
            Files.copy(in, copy);
        }
        return copy;
    }

    private static Tensor read(StateDict dict, String name) {
        Tensor tensor = Tensor.zeros(dict.types().get(name));
        dict.read(name, tensor.data());
        return tensor;
    }

    /// The rule of the script.
    private static float value(String name, int index) {
        return name.length() + index / 4f;
    }

    private static float[] values(String name, int count) {
        float[] values = new float[count];
        for (int i = 0; i < count; i++) {
            values[i] = value(name, i);
        }
        return values;
    }

    @Test
    void everyTypeAndView() throws IOException {
        try (StateDict dict = StateDict.open(file("state-dict.pt"))) {
            for (String kind : new String[] {"float", "half", "brain", "double"}) {
                Tensor tensor = read(dict, kind + ".weight");
                assertThat(tensor.type()).isEqualTo(Type.f32(2, 3));
                assertThat(tensor.toFloats()).as(kind).isEqualTo(values(kind + ".weight", 6));
            }
            for (Map.Entry<String, DType> entry : Map.of(
                            "long", DType.I64, "int", DType.I32, "short", DType.I32, "byte", DType.U8)
                    .entrySet()) {
                Tensor tensor = read(dict, entry.getKey());
                assertThat(tensor.type().dtype()).isEqualTo(entry.getValue());
                assertThat(tensor.toInts()).as(entry.getKey()).containsExactly(0, 1, 2, 3);
            }
            assertThat(read(dict, "bool")).isEqualTo(Tensor.of(Shape.of(4), false, true, true, true));
            assertThat(read(dict, "scalar")).isEqualTo(Tensor.scalar(2.5f));
            assertThat(read(dict, "empty").type()).isEqualTo(Type.f32(0, 3));
            assertThat(read(dict, "parameter").toFloats()).isEqualTo(values("parameter", 4));

            Tensor transposed = read(dict, "views.transposed");
            assertThat(transposed.shape()).isEqualTo(Shape.of(6, 4));
            for (int i = 0; i < 24; i++) {
                assertThat(transposed.getFloat(i)).isEqualTo(value("views", i % 4 * 6 + i / 4));
            }
            Tensor slice = read(dict, "views.slice");
            for (int i = 0; i < 6; i++) {
                assertThat(slice.getFloat(i)).isEqualTo(value("views", (1 + i / 3) * 6 + i % 3 * 2));
            }
            assertThat(read(dict, "views.row").getFloat(0)).isEqualTo(value("views", 12));
            assertThatThrownBy(() -> dict.read("other", Tensor.scalar(1f).data()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("no tensor other");
        }
    }

    @Test
    void aCheckpointIsOpenedAtItsStateDict() throws IOException {
        try (StateDict dict = StateDict.open(file("checkpoint.pth"))) {
            assertThat(dict.types().keySet())
                    .containsExactly(
                            "0.weight",
                            "0.bias",
                            "2.weight",
                            "2.bias",
                            "2.running_mean",
                            "2.running_var",
                            "2.num_batches_tracked");
            assertThat(read(dict, "0.weight").toFloats()).isEqualTo(values("0.weight", 6));
            assertThat(read(dict, "2.num_batches_tracked").getLong(0)).isEqualTo(21);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "malicious.pt | asks Python for posix.system, which is code and not a tensor; refused",
                "whole-module.pt | asks Python for torch.nn.modules.container.Sequential",
                "legacy.pt | from before version 1.6. Convert it in Python: torch.save(torch.load('legacy.pt'",
                "make_state_dicts.py | not a file of torch.save, which is a zip; it begins with the bytes 23 21"
            })
    void refused(String name, String message) throws IOException {
        Path file = file(name);
        assertThatThrownBy(() -> StateDict.open(file))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(name)
                .hasMessageContaining(message);
        assertThat(folder.resolve("attacked")).doesNotExist();
    }

    @Test
    void truncated() throws IOException {
        Path file = file("state-dict.pt");
        byte[] bytes = Files.readAllBytes(file);
        Files.write(file, Arrays.copyOf(bytes, bytes.length / 2));
        fails(file, "its zip cannot be read");
    }

    /// Pickles by hand, in the notation of pickletools: what a crafted file may try.
    @Test
    void craftedPickles() throws IOException {
        refusedPickle("cos\nsystem\n(S'true'\ntR.", "asks Python for os.system");
        refusedPickle("c__builtin__\neval\n(S'1'\ntR.", "asks Python for __builtin__.eval");
        refusedPickle("\u0080\u0004\u008c\u0008builtins\u008c\u0004exec\u0093.", "asks Python for builtins.exec");
        refusedPickle("(ios\nsystem\n.", "the instruction 0x69");
        refusedPickle("(lp0\n", "ends without its last instruction");
        refusedPickle("X\u00ff\u00ff\u00ff\u007fabc.", "is truncated at byte 0");
        refusedPickle("\u008b\u00ff\u00ff\u00ff\u007f.", "is truncated");
        refusedPickle("j\u0001\u0000\u0000\u0000.", "is truncated at byte 0");
        refusedPickle(".", "takes from an empty stack");
        refusedPickle("N.", "expected a dict of tensors, as model.state_dict() gives, got None");
        refusedPickle("}(]K\u0001u.", "keys are neither texts nor numbers");
        refusedPickle("}(Uaxs.", "is truncated");
        refusedPickle("}(U\u0001aK\u0001u.", "its keys are a");
        // a storage that the zip has not, and views that leave theirs
        String storage = "((U\u0007storagectorch\nFloatStorage\nU\u00010U\u0003cpuK\u0004tQ";
        String tensor = "}U\u0001wctorch._utils\n_rebuild_tensor_v2\n" + storage;
        refusedPickle(tensor + "K\u0000(K\u0002t(K\u0001tNNtRs.", "lies in a/data/0, which the zip does not have");
        refusedPickle(tensor + "K\u0000(K\u0002K\u0002t(K\u0001tNNtRs.", "is not (storage, offset, sizes, strides)");
        refusedPickle(tensor + "K\u0000(J\u00ff\u00ff\u00ff\u00fft(K\u0001tNNtRs.", "tensor of the sizes [-1]");
        refusedPickle(
                tensor
                        + "K\u0000(J\u0000\u0000\u0000\u007fJ\u0000\u0000\u0000\u007fJ\u0000\u0000\u0000\u007ft(K\u0000K\u0000K\u0000tNNtRs.",
                "has a wrong operand");
    }

    @Test
    void viewsOutsideOfTheirStorage() throws IOException {
        String storage = "((U\u0007storagectorch\nFloatStorage\nU\u00010U\u0003cpuK\u0004tQ";
        String tensor = "}U\u0001wctorch._utils\n_rebuild_tensor_v2\n" + storage;
        fails(zip(tensor + "K\u0003(K\u0002t(K\u0001tNNtRs.", 16), "is not inside of its storage of 4 elements");
        fails(zip(tensor + "K\u0000(K\u0009t(K\u0000tNNtRs.", 16), "is not inside of its storage of 4 elements");
        fails(zip(tensor + "K\u0000(K\u0002t(K\u0001tNNtRs.", 15), "expected 16 uncompressed bytes, got 15");
        try (StateDict dict = StateDict.open(zip(tensor + "K\u0002(K\u0002t(K\u0001tNNtRs.", 16))) {
            assertThat(dict.types()).containsEntry("w", Type.f32(2));
        }
    }

    /// Two entries of one name, so that what is checked could be another one than what is read.
    @Test
    void aNameThatIsThereTwice() throws IOException {
        Path file = Files.createTempFile(folder, "made", ".pt");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(file))) {
            store(zip, "a/data.pkl", "}.".getBytes(StandardCharsets.ISO_8859_1));
            store(zip, "a/data/0", new byte[16]);
            store(zip, "a/data/1", new byte[16]);
        }
        String bytes = Files.readString(file, StandardCharsets.ISO_8859_1);
        Files.writeString(file, bytes.replace("a/data/1", "a/data/0"), StandardCharsets.ISO_8859_1);
        fails(file, "a zip of 3 entries with 2 names");
    }

    private void refusedPickle(String pickle, String message) throws IOException {
        fails(zip(pickle, -1), message);
    }

    private static void fails(Path file, String message) {
        assertThatThrownBy(() -> StateDict.open(file).close())
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(file.getFileName().toString())
                .hasMessageContaining(message);
    }

    /// A file as torch.save lays it out, with one storage of so many bytes.
    private Path zip(String pickle, int storage) throws IOException {
        Path file = Files.createTempFile(folder, "made", ".pt");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(file))) {
            store(zip, "a/data.pkl", pickle.getBytes(StandardCharsets.ISO_8859_1));
            if (storage >= 0) {
                store(zip, "a/data/0", new byte[storage]);
            }
        }
        return file;
    }

    static void store(ZipOutputStream zip, String name, byte[] bytes) throws IOException {
        ZipEntry entry = new ZipEntry(name);
        CRC32 crc = new CRC32();
        crc.update(bytes);
        entry.setMethod(ZipEntry.STORED);
        entry.setSize(bytes.length);
        entry.setCrc(crc.getValue());
        zip.putNextEntry(entry);
        zip.write(bytes);
        zip.closeEntry();
    }
}
