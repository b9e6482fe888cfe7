package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleUnaryOperator;
import org.jspecify.annotations.Nullable;

/// Signal processing: Fourier transforms as products with matrices, and the tables around them.
final class OnnxSignals {
    private OnnxSignals() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("DFT", one(OnnxSignals::transform));
        t.put("STFT", one(OnnxSignals::shortTime));
        t.put("HannWindow", one(c -> window(c, x -> 0.5 - 0.5 * Math.cos(x))));
        t.put("HammingWindow", one(c -> window(c, x -> 25.0 / 46 - 21.0 / 46 * Math.cos(x))));
        t.put("BlackmanWindow", one(c -> window(c, x -> 0.42 - 0.5 * Math.cos(x) + 0.08 * Math.cos(2 * x))));
        t.put("MelWeightMatrix", one(OnnxSignals::mel));
    }

    /// A function of 2π·i/n; n is the size, or the size − 1 where the window is symmetric.
    private static Value window(OnnxCall c, DoubleUnaryOperator shape) {
        int size = c.known(0).getInt(0);
        int n = c.integer("periodic", 1) != 0 ? size : size - 1;
        float[] values = new float[size];
        for (int i = 0; i < size; i++) {
            values[i] = (float) shape.applyAsDouble(2 * Math.PI * i / n);
        }
        return OnnxMath.cast(
                c.b(),
                c.b().constant(Tensor.of(Shape.of(size), values)),
                c.elementType("output_datatype", OnnxType.FLOAT));
    }

    /// cos or sin of 2π·j·k / n as a matrix [rows, columns].
    private static Value wave(GraphBuilder b, int rows, int columns, int n, boolean sine) {
        float[] values = new float[Math.multiplyExact(rows, columns)];
        for (int j = 0; j < rows; j++) {
            for (int k = 0; k < columns; k++) {
                double angle = 2 * Math.PI * ((long) j * k % n) / n;
                values[j * columns + k] = (float) (sine ? Math.sin(angle) : Math.cos(angle));
            }
        }
        return b.constant(Tensor.of(Shape.of(rows, columns), values));
    }

    private record Complex(Value real, Value imaginary) {}

    /// x of rows [..., n] to [..., columns]: Σ x·e^(∓2πi·j·k/n); without an imaginary part two products, with one four.
    private static Complex fourier(
            GraphBuilder b, Value real, @Nullable Value imaginary, int columns, int n, boolean inverse) {
        int rows = real.shape().dim(-1);
        Value cosine = wave(b, rows, columns, n, false);
        Value sine = wave(b, rows, columns, n, true);
        Value forward = inverse ? sine : b.negate(sine);
        Value re = OnnxContractions.matmul(b, real, cosine);
        Value im = OnnxContractions.matmul(b, real, forward);
        if (imaginary != null) {
            re = b.subtract(re, OnnxContractions.matmul(b, imaginary, forward));
            im = b.add(im, OnnxContractions.matmul(b, imaginary, cosine));
        }
        return inverse ? new Complex(b.multiply(re, 1.0 / n), b.multiply(im, 1.0 / n)) : new Complex(re, im);
    }

    private static Value part(GraphBuilder b, Value x, int i) {
        Value one = b.slice(x, -1, i, i + 1);
        return b.reshape(one, x.shape().without(List.of(x.shape().rank() - 1)));
    }

    private static Value joined(GraphBuilder b, Complex z) {
        List<Integer> dims = new ArrayList<>(OnnxShapes.dims(z.real()));
        dims.add(1);
        Shape shape = Shape.of(dims);
        return b.concatenate(List.of(b.reshape(z.real(), shape), b.reshape(z.imaginary(), shape)), -1);
    }

    /// x [..., signal, ..., 1 or 2] along one axis.
    private static Value transform(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int rank = x.shape().rank();
        int axis = c.has(2) ? c.axis(c.longs(2).getFirst(), rank) : c.axis("axis", c.opset() >= 20 ? -2 : 1, rank);
        int length = c.has(1) ? c.known(1).getInt(0) : x.shape().dim(axis);
        boolean inverse = c.flag("inverse");
        int columns = c.flag("onesided") ? length / 2 + 1 : length;
        int have = x.shape().dim(axis);
        Value line = have > length ? b.slice(x, axis, 0, length) : x; // zeros past the end add nothing
        List<Integer> order = OnnxReductions.toEnd(rank - 1, axis);
        Value real = b.transpose(part(b, line, 0), order);
        Value imaginary = x.shape().dim(-1) == 2 ? b.transpose(part(b, line, 1), order) : null;
        Complex z = fourier(b, real, imaginary, columns, length, inverse);
        List<Integer> back = OnnxReductions.inverse(order);
        return joined(b, new Complex(b.transpose(z.real(), back), b.transpose(z.imaginary(), back)));
    }

    /// x [batch, samples, 1 or 2] cut into frames → [batch, frames, frequencies, 2].
    private static Value shortTime(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int step = c.known(1).getInt(0);
        int length = c.has(3) ? c.known(3).getInt(0) : c.in(2).shape().dim(0);
        Value signal = x.shape().rank() == 3 ? part(b, x, 0) : x;
        int frames = (signal.shape().dim(1) - length) / step + 1;
        int[] places = new int[frames * length];
        for (int i = 0; i < places.length; i++) {
            places[i] = i / length * step + i % length;
        }
        Value at = b.constant(Tensor.of(Shape.of(frames, length), places));
        boolean complex = x.shape().rank() == 3 && x.shape().dim(2) == 2;
        Value real = windowed(c, b.gather(signal, at, 1), length);
        Value imaginary = complex ? windowed(c, b.gather(part(b, x, 1), at, 1), length) : null;
        int columns = c.integer("onesided", 1) != 0 ? length / 2 + 1 : length;
        return joined(b, fourier(b, real, imaginary, columns, length, false));
    }

    private static Value windowed(OnnxCall c, Value frames, int length) {
        if (!c.has(2)) {
            return frames;
        }
        Value window = c.in(2);
        int missing = length - window.shape().dim(0);
        if (missing > 0) { // a shorter window lies in the middle
            window = OnnxPad.constant(
                    c.b(), window, c.scalar(window, 0), new int[] {missing / 2}, new int[] {missing - missing / 2});
        }
        return c.b().multiply(frames, window);
    }

    /// Triangles of equal width on the mel scale: bins, transform length, sample rate, lower and upper edge in hertz.
    private static Value mel(OnnxCall c) {
        int bins = c.known(0).getInt(0);
        int length = c.known(1).getInt(0);
        int rate = c.known(2).getInt(0);
        double low = toMel(c.known(3).getFloat(0));
        double high = toMel(c.known(4).getFloat(0));
        int spectrum = length / 2 + 1;
        int[] edges = new int[bins + 2];
        for (int i = 0; i < edges.length; i++) {
            double hertz = 700 * (Math.pow(10, (low + i * (high - low) / edges.length) / 2595) - 1);
            edges[i] = (int) Math.floor((length + 1) * hertz / rate);
        }
        float[] values = new float[spectrum * bins];
        for (int bin = 0; bin < bins; bin++) {
            int from = edges[bin];
            int centre = edges[bin + 1];
            int to = edges[bin + 2];
            if (from < 0 || to > spectrum) {
                throw new IngotException("the edges of mel bin " + bin + " lie outside of the spectrum");
            }
            if (centre == from) {
                values[centre * bins + bin] = 1;
            }
            for (int j = from; j <= centre && centre > from; j++) {
                values[j * bins + bin] = (j - from) / (float) (centre - from);
            }
            for (int j = centre; j < to && to > centre; j++) {
                values[j * bins + bin] = (to - j) / (float) (to - centre);
            }
        }
        return c.b().constant(Tensor.of(Shape.of(spectrum, bins), values));
    }

    private static double toMel(double hertz) {
        return 2595 * Math.log10(1 + hertz / 700);
    }
}
