package ingot.compiler;

import ingot.ir.DType;
import ingot.ir.Shape;
import ingot.ir.Type;
import java.util.List;
import java.util.stream.LongStream;

/// How a kernel sees one operand: an affine map from an index space to the elements of a buffer.
///
/// Element (i₀, i₁, …) of the space lies at `offset + Σ iₐ · strides[a]`, counted in elements from the operand's address. A stride of 0
/// repeats, a permuted stride list transposes: views cost nothing.
public record Layout(DType dtype, Shape shape, long offset, List<Long> strides) {
    public Layout {
        strides = List.copyOf(strides);
        if (strides.size() != shape.rank()) {
            throw new IllegalArgumentException("layout: " + shape + " with strides " + strides);
        }
    }

    public static Layout rowMajor(Type type) {
        return new Layout(
                type.dtype(), type.shape(), 0, LongStream.of(type.shape().strides()).boxed().toList());
    }

    public Type type() {
        return new Type(dtype, shape);
    }
}
