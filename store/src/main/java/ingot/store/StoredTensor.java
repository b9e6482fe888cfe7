package ingot.store;

import ingot.ir.DType;
import ingot.ir.Type;

/// A tensor that a store holds in chunks.
public record StoredTensor(String name, Type type) {
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
