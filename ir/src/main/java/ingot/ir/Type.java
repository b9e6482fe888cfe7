package ingot.ir;

/// An element type and a static shape, printed as `f32[4, 8]`.
public record Type(DType dtype, Shape shape) {
    public static Type f32(int... dims) {
        return new Type(DType.F32, Shape.of(dims));
    }

    public static Type i32(int... dims) {
        return new Type(DType.I32, Shape.of(dims));
    }

    public static Type bool(int... dims) {
        return new Type(DType.BOOL, Shape.of(dims));
    }

    public long bytes() {
        return shape.elements() * dtype.bytes();
    }

    public Type with(Shape other) {
        return new Type(dtype, other);
    }

    public Type with(DType other) {
        return new Type(other, shape);
    }

    @Override
    public String toString() {
        return dtype.text() + shape;
    }
}
