package ingot.ir;

import java.util.Arrays;
import java.util.List;

/// The sizes of a tensor's axes, row-major; rank 0 is a scalar. Sizes may be 0.
public final class Shape {
    public static final Shape SCALAR = new Shape(new int[0]);

    private final int[] dims;

    private Shape(int[] dims) {
        for (int dim : dims) {
            if (dim < 0) {
                throw new IngotException("shape: sizes are not negative, got " + Arrays.toString(dims));
            }
        }
        this.dims = dims;
    }

    public static Shape of(int... dims) {
        return dims.length == 0 ? SCALAR : new Shape(dims.clone());
    }

    public static Shape of(List<Integer> dims) {
        return new Shape(dims.stream().mapToInt(Integer::intValue).toArray());
    }

    public int rank() {
        return dims.length;
    }

    /// Size of an axis; negative axes count from the end.
    public int dim(int axis) {
        return dims[axis < 0 ? axis + dims.length : axis];
    }

    public int[] dims() {
        return dims.clone();
    }

    public long elements() {
        long n = 1;
        for (int dim : dims) {
            n = Math.multiplyExact(n, (long) dim);
        }
        return n;
    }

    /// Row-major strides in elements.
    public long[] strides() {
        long[] strides = new long[dims.length];
        long stride = 1;
        for (int i = dims.length - 1; i >= 0; i--) {
            strides[i] = stride;
            stride *= dims[i];
        }
        return strides;
    }

    /// The same shape with one axis resized.
    public Shape with(int axis, int size) {
        int[] copy = dims.clone();
        copy[axis < 0 ? axis + dims.length : axis] = size;
        return new Shape(copy);
    }

    /// The shape without the given axes.
    public Shape without(List<Integer> axes) {
        int[] kept = new int[dims.length];
        int n = 0;
        for (int i = 0; i < dims.length; i++) {
            if (!axes.contains(i)) {
                kept[n++] = dims[i];
            }
        }
        return new Shape(Arrays.copyOf(kept, n));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Shape shape && Arrays.equals(dims, shape.dims);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(dims);
    }

    @Override
    public String toString() {
        return Arrays.toString(dims);
    }
}
