package ingot.formats;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.store.BaseWeights;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/// The tensors of a file that `torch.save` wrote: a zip of a pickle and one entry per storage.
///
/// The pickle is read as data (`Pickle`), so that a file cannot do anything. A checkpoint that holds the state dict
/// under `state_dict`, `model_state_dict` or `model` is opened there. F64 becomes F32.
public final class StateDict implements WeightSource {
    private static final int CHUNK = 1 << 20;
    private static final long MOST_PICKLE = 64L << 20;
    private static final List<String> INNER = List.of("state_dict", "model_state_dict", "model");
    /// How files begin that PyTorch wrote before 1.6: a pickled magic number.
    private static final byte[] LEGACY = {
        (byte) 0x80, 2, (byte) 0x8a, 10, 0x6c, (byte) 0xfc, (byte) 0x9c, 0x46, (byte) 0xf9, 0x20
    };

    private final Path path;
    private final ZipFile zip;
    private final SequencedMap<String, View> views = new LinkedHashMap<>();

    /// Memory of a file: `elements` of a type, in the zip entry `entry`.
    record Storage(String entry, TorchType type, long elements) {}

    /// A tensor: a strided view of a storage.
    record View(Storage storage, long offset, Shape shape, long[] strides) {
        boolean contiguous() {
            long[] dense = shape.strides();
            for (int i = 0; i < strides.length; i++) {
                if (shape.dim(i) > 1 && strides[i] != dense[i]) {
                    return false;
                }
            }
            return true;
        }

        /// The greatest position in the storage, relative to `offset`.
        long last() {
            long last = 0;
            for (int i = 0; i < strides.length; i++) {
                last += (shape.dim(i) - 1L) * strides[i];
            }
            return last;
        }

        Type type() {
            return new Type(storage.type().dtype(), shape);
        }
    }

    private String fingerprint = "";

    private StateDict(Path path, ZipFile zip) {
        this.path = path;
        this.zip = zip;
    }

    public static StateDict open(Path path) {
        check(path);
        ZipFile zip;
        try {
            zip = new ZipFile(path.toFile());
        } catch (ZipException e) {
            throw new IngotException(path + ": its zip cannot be read (" + e.getMessage() + "); it is truncated", e);
        } catch (IOException e) {
            throw new IngotException(path + ": cannot be read: " + e.getMessage(), e);
        }
        StateDict opened = new StateDict(path, zip);
        try {
            opened.parse();
            return opened;
        } catch (RuntimeException e) {
            opened.close();
            throw e;
        }
    }

    /// Refuses by their first bytes what is no zip.
    private static void check(Path path) {
        byte[] start = new byte[LEGACY.length];
        int count;
        try (InputStream in = Files.newInputStream(path)) {
            count = in.readNBytes(start, 0, start.length);
        } catch (IOException e) {
            throw new IngotException(path + ": cannot be read (" + e.getClass().getSimpleName() + ")", e);
        }
        if (Arrays.equals(start, LEGACY)) {
            throw new IngotException(path + ": PyTorch's file format from before version 1.6. Convert it in Python: "
                    + "torch.save(torch.load('" + path.getFileName() + "', map_location='cpu'), 'new.pt')");
        }
        if (count < 4 || start[0] != 'P' || start[1] != 'K') {
            throw new IngotException(path + ": not a file of torch.save, which is a zip; it begins with the bytes "
                    + HexFormat.ofDelimiter(" ").formatHex(start, 0, count));
        }
    }

    private void parse() {
        long names = zip.stream().map(ZipEntry::getName).distinct().count();
        if (names != zip.size()) {
            throw new IngotException(path + ": a zip of " + zip.size() + " entries with " + names
                    + " names; expected every name once, as torch.save writes them");
        }
        ZipEntry pickle = zip.stream()
                .filter(entry ->
                        entry.getName().equals("data.pkl") || entry.getName().endsWith("/data.pkl"))
                .findFirst()
                .map(entry -> (ZipEntry) entry)
                .orElseThrow(() -> new IngotException(path
                        + ": a zip without data.pkl, so no file of torch.save; it has " + zip.size() + " entries"));
        String folder = pickle.getName().substring(0, pickle.getName().length() - "data.pkl".length());
        if (pickle.getSize() > MOST_PICKLE) {
            throw new IngotException(
                    path + ": data.pkl has " + pickle.getSize() + " bytes, expected at most " + MOST_PICKLE);
        }
        ZipEntry order = zip.getEntry(folder + "byteorder");
        if (order != null
                && Arrays.equals(bytes(order, 16), "big".getBytes(java.nio.charset.StandardCharsets.US_ASCII))) {
            throw new IngotException(path + ": written on a big-endian machine; save it again on a little-endian one");
        }
        byte[] code = bytes(pickle, MOST_PICKLE);
        fingerprint = fingerprint(code);
        Object root = Pickle.read(path.toString(), code, new TorchGlobals(path, folder));
        Map<?, ?> dict = tensors(root);
        dict.forEach((name, value) -> {
            if (name instanceof String text && value instanceof View view) {
                views.put(text, checked(text, view));
            }
        });
    }

    /// The dict that has tensors: the root, or one known to hold a state dict.
    private Map<?, ?> tensors(@Nullable Object root) {
        if (!(root instanceof Map<?, ?> map)) {
            throw new IngotException(path + ": expected a dict of tensors, as model.state_dict() gives, got "
                    + (root == null ? "None" : root instanceof View ? "one tensor" : "something else"));
        }
        if (map.isEmpty() || map.values().stream().anyMatch(View.class::isInstance)) {
            return map;
        }
        for (String key : INNER) {
            if (map.get(key) instanceof Map<?, ?> inner
                    && inner.values().stream().anyMatch(View.class::isInstance)) {
                return inner;
            }
        }
        List<String> keys = map.keySet().stream().map(String::valueOf).toList();
        throw new IngotException(path + ": no tensors in its dict, nor in " + INNER + " of it; its keys are "
                + Listing.of(keys) + ". Save the state dict alone: torch.save(model.state_dict(), 'model.pt')");
    }

    /// Checks that a view lies in its storage, and the storage in the file.
    private View checked(String name, View view) {
        ZipEntry entry = zip.getEntry(view.storage().entry());
        if (entry == null) {
            throw new IngotException(path + ": " + name + " lies in "
                    + view.storage().entry() + ", which the zip does not have; it is truncated");
        }
        long bytes = view.storage().elements() * view.storage().type().bytes();
        if (entry.getMethod() != ZipEntry.STORED || entry.getSize() != bytes) {
            throw new IngotException(path + ": " + name + " lies in " + entry.getName() + ", expected "
                    + bytes + " uncompressed bytes, got " + entry.getSize()
                    + (entry.getMethod() == ZipEntry.STORED ? "" : " compressed ones"));
        }
        long elements = view.shape().elements();
        boolean inside = elements == 0
                || (elements <= view.storage().elements()
                        && view.offset() + view.last() < view.storage().elements());
        if (!inside) {
            throw new IngotException(path + ": " + name + " " + view.type() + " with strides "
                    + Arrays.toString(view.strides()) + " at " + view.offset() + " is not inside of its storage of "
                    + view.storage().elements() + " elements");
        }
        return view;
    }

    private static String fingerprint(byte[] pickle) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(pickle));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    /// The hash of the pickle: files that differ in it have other tensors.
    String fingerprint() {
        return fingerprint;
    }

    /// Where the floating-point tensors lie in the file.
    SequencedMap<String, BaseWeights.Region> regions() {
        SequencedMap<String, BaseWeights.Region> regions = new LinkedHashMap<>();
        try (var entries = org.apache.commons.compress.archivers.zip.ZipFile.builder()
                .setPath(path)
                .get()) {
            views.forEach((name, view) -> {
                Storage storage = view.storage();
                if (storage.type().dtype() != DType.F32) {
                    return;
                }
                if (!view.contiguous() || storage.type() == TorchType.F64) {
                    throw new IngotException(path + ": " + name + " is "
                            + storage.type().torch() + " with strides "
                            + Arrays.toString(view.strides()) + ", which cannot be read in place; expected dense"
                            + " float32, float16 or bfloat16. Save it as safetensors, in Python by"
                            + " model.save_pretrained(folder, safe_serialization=True)");
                }
                long data = entries.getEntry(storage.entry()).getDataOffset();
                DType dtype =
                        storage.type().isHalf() ? DType.valueOf(storage.type().name()) : DType.F32;
                regions.put(
                        name,
                        new BaseWeights.Region(
                                new Type(dtype, view.shape()),
                                path,
                                data + view.offset() * storage.type().bytes()));
            });
            return regions;
        } catch (IOException e) {
            throw new IngotException(path + ": its zip cannot be read (" + e.getMessage() + ")", e);
        }
    }

    @Override
    public SequencedMap<String, Type> types() {
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        views.forEach((name, view) -> types.put(name, view.type()));
        return types;
    }

    @Override
    public void read(String name, MemorySegment target) {
        View view = views.get(name);
        if (view == null) {
            throw new IngotException(path + ": no tensor " + name + "; it has " + views.size());
        }
        if (target.byteSize() != view.type().bytes()) {
            throw new IllegalArgumentException(
                    name + ": " + view.type().bytes() + " bytes, target has " + target.byteSize());
        }
        TorchType type = view.storage().type();
        if (view.shape().elements() == 0) {
            return;
        }
        if (view.contiguous() && type.isPlain()) {
            read(view.storage(), view.offset(), target);
        } else if (view.contiguous() && type.isHalf()) {
            read(view.storage(), view.offset(), HalfPrecision.upper(target));
            HalfPrecision.widen(type == TorchType.F16 ? DType.F16 : DType.BF16, target);
        } else {
            gather(view, target);
        }
    }

    /// Any strides: reads the stretch of the storage that the view lies in, then picks its elements.
    private void gather(View view, MemorySegment target) {
        TorchType type = view.storage().type();
        long stretch = view.last() + 1;
        MemorySegment source = MemorySegment.ofArray(new byte[Math.toIntExact(stretch * type.bytes())]);
        read(view.storage(), view.offset(), source);
        Tensor tensor = Tensor.over(view.type(), target);
        int[] index = new int[view.shape().rank()];
        for (long i = 0; i < view.shape().elements(); i++) {
            long at = 0;
            for (int axis = 0; axis < index.length; axis++) {
                at += index[axis] * view.strides()[axis];
            }
            type.copy(source, at, tensor, i);
            for (int axis = index.length - 1;
                    axis >= 0 && ++index[axis] == view.shape().dim(axis);
                    axis--) {
                index[axis] = 0;
            }
        }
    }

    private void read(Storage storage, long offset, MemorySegment target) {
        ZipEntry entry = Objects.requireNonNull(zip.getEntry(storage.entry()));
        try (InputStream in = zip.getInputStream(entry)) {
            in.skipNBytes(offset * storage.type().bytes());
            byte[] buffer = new byte[(int) Math.min(CHUNK, target.byteSize())];
            for (long at = 0; at < target.byteSize(); ) {
                int count = in.read(buffer, 0, (int) Math.min(buffer.length, target.byteSize() - at));
                if (count < 0) {
                    throw new EOFException("it ends at byte " + at + " of " + target.byteSize());
                }
                MemorySegment.copy(MemorySegment.ofArray(buffer), 0, target, at, count);
                at += count;
            }
        } catch (IOException e) {
            throw new IngotException(path + ": cannot read " + entry.getName() + ": " + e.getMessage(), e);
        }
    }

    private byte[] bytes(ZipEntry entry, long most) {
        try (InputStream in = zip.getInputStream(entry)) {
            return in.readNBytes((int) most);
        } catch (IOException e) {
            throw new IngotException(path + ": cannot read " + entry.getName() + ": " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        try {
            zip.close();
        } catch (IOException e) {
            throw new IngotException(path + ": cannot be closed: " + e.getMessage(), e);
        }
    }
}
