package ingot.formats;

import ingot.formats.StateDict.Storage;
import ingot.formats.StateDict.View;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The names in a state dict's pickle: how PyTorch rebuilds tensors, and Python's containers. Everything else is
/// refused.
record TorchGlobals(Path path, String folder) implements Pickle.Globals {
    /// The functions that are understood.
    private enum Known {
        ORDERED_DICT,
        CONTAINER,
        TENSOR,
        PARAMETER
    }

    @Override
    public Object find(String module, String name) {
        if (module.equals("torch")) {
            for (TorchType type : TorchType.values()) {
                if (name.equals(type.storage()) || name.equals(type.torch())) {
                    return type;
                }
            }
        }
        return switch (module + "." + name) {
            case "collections.OrderedDict", "builtins.dict", "__builtin__.dict" -> Known.ORDERED_DICT;
            case "builtins.list",
                    "builtins.tuple",
                    "builtins.set",
                    "__builtin__.list",
                    "__builtin__.set",
                    "torch.Size" -> Known.CONTAINER;
            case "torch._utils._rebuild_tensor_v2" -> Known.TENSOR;
            case "torch._utils._rebuild_parameter" -> Known.PARAMETER;
            default ->
                throw new IngotException(path + ": its pickle asks Python for " + module + "." + name
                        + ", which is code and not a tensor; refused. A file that holds only a state dict can be"
                        + " opened: torch.save(model.state_dict(), 'model.pt')");
        };
    }

    @Override
    public @Nullable Object call(Object function, List<@Nullable Object> arguments) {
        if (!(function instanceof Known known)) {
            throw new IngotException(path + ": its pickle calls something that is no function");
        }
        return switch (known) {
            case ORDERED_DICT -> dict(arguments);
            case CONTAINER -> arguments.isEmpty() ? List.of() : arguments.getFirst();
            case TENSOR -> tensor(arguments);
            case PARAMETER -> arguments.isEmpty() ? null : arguments.getFirst();
        };
    }

    /// `('storage', type, key, device, elements)`.
    @Override
    public Object persistent(@Nullable Object id) {
        if (id instanceof List<?> tuple
                && tuple.size() >= 5
                && "storage".equals(tuple.get(0))
                && tuple.get(1) instanceof TorchType type
                && tuple.get(2) instanceof String key
                && tuple.get(4) instanceof Long elements
                && elements >= 0
                && elements <= Long.MAX_VALUE / 8) {
            return new Storage(folder + "data/" + key, type, elements);
        }
        throw new IngotException(path
                + ": its pickle has a persistent id that is no storage of a known type; known are "
                + Arrays.stream(TorchType.values()).map(TorchType::torch).toList());
    }

    /// Of nothing, or of a list of pairs.
    private Map<@Nullable Object, @Nullable Object> dict(List<@Nullable Object> arguments) {
        Map<@Nullable Object, @Nullable Object> dict = new LinkedHashMap<>();
        if (!arguments.isEmpty() && arguments.getFirst() instanceof List<?> pairs) {
            for (Object pair : pairs) {
                if (!(pair instanceof List<?> two && two.size() == 2 && two.get(0) instanceof String key)) {
                    throw new IngotException(path + ": its pickle has an OrderedDict of something else than pairs");
                }
                dict.put(key, two.get(1));
            }
        }
        return dict;
    }

    /// `(storage, offset, size, stride, requires_grad, hooks)`.
    private View tensor(List<@Nullable Object> arguments) {
        if (arguments.size() >= 4
                && arguments.get(0) instanceof Storage storage
                && arguments.get(1) instanceof Long offset
                && offset >= 0
                && arguments.get(2) instanceof List<?> size
                && arguments.get(3) instanceof List<?> stride
                && size.size() == stride.size()) {
            int[] dims = new int[size.size()];
            long[] strides = new long[dims.length];
            long span = 0;
            long elements = 1;
            for (int i = 0; i < dims.length; i++) {
                if (!(size.get(i) instanceof Long dim && stride.get(i) instanceof Long step)
                        || dim < 0
                        || dim > Integer.MAX_VALUE
                        || step < 0) {
                    throw new IngotException(path + ": its pickle has a tensor of the sizes " + shown(size)
                            + " and strides " + shown(stride) + " in a storage of " + storage.elements() + " elements");
                }
                dims[i] = (int) (long) dim;
                strides[i] = step;
                span = Math.addExact(span, Math.multiplyExact(Math.max(0, dim - 1), step));
                elements = Math.multiplyExact(elements, dim);
            }
            if (offset <= storage.elements() && span <= Long.MAX_VALUE - offset && elements <= Long.MAX_VALUE / 8) {
                return new View(storage, offset, Shape.of(dims), strides);
            }
        }
        throw new IngotException(path + ": its pickle has a tensor that is not (storage, offset, sizes, strides)");
    }

    private static String shown(List<?> numbers) {
        return numbers.stream().allMatch(n -> n instanceof Long) ? numbers.toString() : "(not numbers)";
    }
}
