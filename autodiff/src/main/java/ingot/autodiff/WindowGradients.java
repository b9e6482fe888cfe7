package ingot.autodiff;

import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;

/// Derivatives of the pooling windows.
final class WindowGradients {
    private WindowGradients() {}

    static void reduceWindow(GraphBuilder b, Op.ReduceWindow op, Value dy, Cotangents flow) {
        Value x = op.x();
        switch (op.kind()) {
            // dx[p] = Σ of dy over the windows that read p: windows over dy spread by the strides
            case SUM ->
                flow.add(x, () -> {
                    int[] size = op.size().stream().mapToInt(Integer::intValue).toArray();
                    Op.Window back = back(x.shape().dims(), size, dy.shape().dims(), op.window());
                    return b.add(new Op.ReduceWindow(ReduceKind.SUM, dy, op.size(), back));
                });
            // All to the first largest element of the window
            case MAX -> flow.add(x, () -> b.add(new Op.ScatterWindowMax(x, dy, op.size(), op.window())));
            // ShapeRules admits no other kind
            case PRODUCT, MIN, AND, OR -> {}
        }
    }

    /// Linear in the updates: each takes dy back from the first largest position of its window. Piecewise constant in
    /// x.
    static void scatterWindowMax(GraphBuilder b, Op.ScatterWindowMax op, Value dy, Cotangents flow) {
        flow.add(op.updates(), () -> {
            Op.Window window = op.window();
            Value largest = b.add(new Op.ReduceWindow(ReduceKind.MAX, op.x(), op.size(), window));
            Value x = padded(b, op.x(), Double.NEGATIVE_INFINITY, window);
            Value back = padded(b, dy, 0, window);
            Value found = b.broadcast(b.constant(false), largest.shape());
            Value result = b.broadcast(b.scalarLike(dy, 0), largest.shape());
            int positions = op.size().stream().reduce(1, Math::multiplyExact);
            for (int position = 0; position < positions; position++) {
                List<Integer> offset = offset(position, op.size(), window);
                Value here = b.compare(CompareKind.EQUAL, section(b, x, offset, largest.shape(), window), largest);
                Value first = b.binary(BinaryKind.AND, here, b.unary(UnaryKind.NOT, found));
                result = b.select(first, section(b, back, offset, largest.shape(), window), result);
                found = b.binary(BinaryKind.OR, found, here);
            }
            return result;
        });
    }

    /// The window that runs over the outputs of `window` and lands on its inputs (spread by their dilation): strides
    /// and input dilation change places, and the padding, negative where the outputs reach beyond, makes the number of
    /// positions that of the inputs.
    static Op.Window back(int[] inputs, int[] size, int[] outputs, Op.Window window) {
        List<Integer> low = new ArrayList<>();
        List<Integer> high = new ArrayList<>();
        for (int i = 0; i < inputs.length; i++) {
            int reach = (size[i] - 1) * window.windowDilation().get(i);
            int dilated = inputs[i] == 0
                    ? 0
                    : (inputs[i] - 1) * window.inputDilation().get(i) + 1;
            int spread =
                    outputs[i] == 0 ? 0 : (outputs[i] - 1) * window.strides().get(i) + 1;
            low.add(reach - window.low().get(i));
            high.add(dilated + reach - spread - low.getLast());
        }
        return new Op.Window(window.inputDilation(), low, high, window.strides(), window.windowDilation());
    }

    /// x with the window's dilation and padding made explicit.
    private static Value padded(GraphBuilder b, Value x, double padding, Op.Window window) {
        List<Integer> interior = window.inputDilation().stream().map(d -> d - 1).toList();
        List<Integer> low = window.low().stream().map(p -> Math.max(p, 0)).toList();
        List<Integer> high = window.high().stream().map(p -> Math.max(p, 0)).toList();
        return b.add(new Op.Pad(x, b.scalarLike(x, padding), low, high, interior));
    }

    private static List<Integer> offset(int position, List<Integer> size, Op.Window window) {
        List<Integer> offset = new ArrayList<>();
        int rest = position;
        for (int axis = size.size() - 1; axis >= 0; axis--) {
            int inWindow = rest % size.get(axis);
            rest /= size.get(axis);
            offset.addFirst(inWindow * window.windowDilation().get(axis)
                    + Math.max(0, -window.low().get(axis)));
        }
        return offset;
    }

    /// The element at `offset` of every window.
    private static Value section(GraphBuilder b, Value x, List<Integer> offset, Shape windows, Op.Window window) {
        List<Integer> limits = new ArrayList<>();
        for (int axis = 0; axis < offset.size(); axis++) {
            int last = (windows.dim(axis) - 1) * window.strides().get(axis);
            limits.add(windows.dim(axis) == 0 ? offset.get(axis) : offset.get(axis) + last + 1);
        }
        return b.add(new Op.Slice(x, offset, limits, window.strides()));
    }
}
