package ingot.store;

import ingot.ir.DType;
import ingot.ir.Type;

/// A tensor that a store holds in chunks.
///
/// @param frozen it keeps its first values: it has no moments and no gradient, and takes no room in the file
public record StoredTensor(String name, Type type, boolean frozen) {
    /// A tensor that is trained.
    public StoredTensor(String name, Type type) {
        this(name, type, false);
    }

    public StoredTensor {
        if (name.isEmpty()) {
            throw new IllegalArgumentException("a stored tensor has no name");
        }
        if (type.dtype() != DType.F32) {
            throw new IllegalArgumentException(name + " is " + type + ", a store holds f32");
        }
    }

    long elements() {
        return type.shape().elements();
    }
}
