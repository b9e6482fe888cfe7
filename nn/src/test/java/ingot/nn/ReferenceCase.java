package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.testkit.Reference;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// A folder of the PyTorch reference.
final class ReferenceCase {
    private static final Pattern ENTRY = Pattern.compile(
            "\"([^\"]+)\"\\s*:\\s*\\{\\s*\"dtype\"\\s*:\\s*\"(\\w+)\"\\s*,\\s*\"shape\"\\s*:\\s*\\[([\\d,\\s]*)]\\s*,"
                    + "\\s*\"data_offsets\"\\s*:\\s*\\[\\s*(\\d+)\\s*,\\s*(\\d+)\\s*]");

    private final Path folder;

    private ReferenceCase(Path folder) {
        this.folder = folder;
    }

    /// Skips the calling test, saying so, when the reference is not there.
    static ReferenceCase orSkip(String name) {
        return new ReferenceCase(Reference.orSkip(name));
    }

    /// The tensors of a safetensors file; I64 becomes I32.
    Map<String, Tensor> tensors(String file) {
        byte[] bytes;
        try {
            bytes = Files.readAllBytes(folder.resolve(file));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        int header = (int) ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong();
        Matcher entries = ENTRY.matcher(new String(bytes, 8, header, StandardCharsets.UTF_8));
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        while (entries.find()) {
            int[] dims = Arrays.stream(entries.group(3).split(","))
                    .map(String::trim)
                    .filter(s -> !s.isEmpty())
                    .mapToInt(Integer::parseInt)
                    .toArray();
            DType dtype = DType.valueOf(entries.group(2));
            int start = 8 + header + Integer.parseInt(entries.group(4));
            int end = 8 + header + Integer.parseInt(entries.group(5));
            Tensor stored = Tensor.over(
                    new Type(dtype, Shape.of(dims)), MemorySegment.ofArray(Arrays.copyOfRange(bytes, start, end)));
            tensors.put(entries.group(1), dtype == DType.I64 ? narrow(stored) : stored);
        }
        return tensors;
    }

    private static Tensor narrow(Tensor stored) {
        Tensor narrow = Tensor.zeros(new Type(DType.I32, stored.shape()));
        for (long i = 0; i < stored.shape().elements(); i++) {
            narrow.setLong(i, stored.getLong(i));
        }
        return narrow;
    }
}
