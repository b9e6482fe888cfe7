package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/// The different slices of a tensor whose value is known at import: their number is a shape.
final class OnnxUnique {
    private final Tensor x;
    private final int axis;
    private final int size;
    private final long inner;
    private final long outer;

    private OnnxUnique(Tensor x, int axis) {
        this.x = x;
        this.axis = axis;
        this.size = x.shape().dim(axis);
        this.inner = x.shape().strides()[axis];
        this.outer = size == 0 ? 0 : x.shape().elements() / size / inner;
    }

    /// Values, and I64 vectors: first places, numbers of each element's value, counts.
    static List<Value> unique(OnnxCall c) {
        Tensor given = c.known(0);
        boolean flat = !c.hasAttribute("axis");
        Tensor x = flat
                ? Tensor.over(
                        given.type().with(Shape.of(Math.toIntExact(given.shape().elements()))), given.data())
                : given;
        return new OnnxUnique(x, flat ? 0 : c.axis("axis", 0, x.shape().rank())).build(c, c.integer("sorted", 1) != 0);
    }

    private List<Value> build(OnnxCall c, boolean sorted) {
        List<Integer> order = new ArrayList<>(IntStream.range(0, size).boxed().toList());
        order.sort(this::compare); // stable: equal slices by place
        List<Integer> firsts = new ArrayList<>();
        int[] groupOf = new int[size];
        for (int i = 0; i < size; i++) {
            if (i == 0 || compare(order.get(i - 1), order.get(i)) != 0) {
                firsts.add(order.get(i));
            }
            groupOf[order.get(i)] = firsts.size() - 1;
        }
        List<Integer> groups =
                new ArrayList<>(IntStream.range(0, firsts.size()).boxed().toList());
        if (!sorted) {
            groups.sort(java.util.Comparator.comparing(firsts::get));
        }
        int[] places = groups.stream().mapToInt(firsts::get).toArray();
        long[] counts = new long[places.length];
        long[] inverse = new long[size];
        for (int i = 0; i < size; i++) {
            inverse[i] = groups.indexOf(groupOf[i]);
            counts[(int) inverse[i]]++;
        }
        Value all = c.b().constant(x);
        Value values = c.b().gather(all, c.b().constant(Tensor.of(Shape.of(places.length), places)), axis);
        return List.of(
                values, longs(c, IntStream.of(places).asLongStream().toArray()), longs(c, inverse), longs(c, counts));
    }

    private static Value longs(OnnxCall c, long[] values) {
        Tensor tensor = Tensor.zeros(new Type(DType.I64, Shape.of(values.length)));
        for (int i = 0; i < values.length; i++) {
            tensor.setLong(i, values[i]);
        }
        return c.b().constant(tensor);
    }

    /// Slices compare by their first different element.
    private int compare(int a, int b) {
        for (long o = 0; o < outer; o++) {
            for (long i = 0; i < inner; i++) {
                long first = (o * size + a) * inner + i;
                long second = (o * size + b) * inner + i;
                int order = x.type().dtype().isFloating()
                        ? Float.compare(x.getFloat(first), x.getFloat(second))
                        : Long.compare(x.getLong(first), x.getLong(second));
                if (order != 0) {
                    return order;
                }
            }
        }
        return 0;
    }
}
