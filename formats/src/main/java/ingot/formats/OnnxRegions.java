package ingot.formats;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Reads images at places that are computed: `GridSample` and `RoiAlign`.
final class OnnxRegions {
    private OnnxRegions() {}

    /// x [batch, channels, height, width] at y, x of `grid` [batch, rows, columns, 2], which runs from −1 to 1.
    static Value sample(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        if (x.shape().rank() != 4) {
            throw c.unsupported("sampling of " + x.shape());
        }
        String mode = c.text("mode", "bilinear");
        Image image = new Image(b, x, c.text("padding_mode", "zeros"), c.flag("align_corners"));
        Value grid = c.in(1);
        Value column = image.place(component(b, grid, 0), x.shape().dim(3));
        Value row = image.place(component(b, grid, 1), x.shape().dim(2));
        return switch (mode) {
            case "nearest" -> image.at(b.unary(UnaryKind.ROUND, row), b.unary(UnaryKind.ROUND, column), null);
            case "bilinear", "linear" -> image.interpolate(row, column, false);
            case "bicubic", "cubic" -> image.interpolate(row, column, true);
            default -> throw new IngotException("sampling mode " + mode + " is not known");
        };
    }

    /// θ [batch, 2, 3] · (x, y, 1) for every place of an image of the given size: [batch, height, width, 2].
    static Value grid(OnnxCall c) {
        GraphBuilder b = c.b();
        List<Long> size = c.longs(1);
        if (size.size() != 4) {
            throw c.unsupported("an affine grid of size " + size);
        }
        int height = Math.toIntExact(size.get(2));
        int width = Math.toIntExact(size.get(3));
        Type plane = Type.f32(height, width, 1);
        boolean corners = c.flag("align_corners");
        Value x = unit(b, b.iota(plane, 1), width, corners);
        Value y = unit(b, b.iota(plane, 0), height, corners);
        Value places = b.concatenate(List.of(x, y, b.fullLike(x, 1)), 2); // [height, width, 3]
        Value moved = b.dot(places, c.in(0), List.of(), List.of(), List.of(2), List.of(2)); // [height, width, batch, 2]
        return b.transpose(moved, 2, 0, 1, 3);
    }

    /// Places of pixels to −1 … 1.
    private static Value unit(GraphBuilder b, Value at, int size, boolean corners) {
        return corners
                ? b.add(b.multiply(at, 2.0 / Math.max(1, size - 1)), -1)
                : b.add(b.multiply(b.add(at, 0.5), 2.0 / size), -1);
    }

    private static Value component(GraphBuilder b, Value grid, int i) {
        Value one = b.slice(grid, -1, i, i + 1);
        return b.reshape(one, grid.shape().without(List.of(grid.shape().rank() - 1)));
    }

    /// An image that is read at floating places [batch, rows, columns].
    private record Image(GraphBuilder b, Value x, String padding, boolean corners) {
        /// −1 … 1 to places of pixels.
        Value place(Value unit, int size) {
            return corners
                    ? b.multiply(b.add(unit, 1), (size - 1) / 2.0)
                    : b.add(b.multiply(b.add(unit, 1), size / 2.0), -0.5);
        }

        /// The mirrored place: a triangle wave between the borders.
        private Value reflected(Value at, int size) {
            double low = corners ? 0 : -0.5;
            double span = corners ? Math.max(size - 1, 1e-9) : size;
            Value off = b.unary(UnaryKind.ABS, b.add(at, -low));
            Value period = b.binary(BinaryKind.REMAINDER, off, b.scalarLike(off, 2 * span));
            Value folded = b.min(period, b.subtract(b.scalarLike(off, 2 * span), period));
            return b.add(folded, low);
        }

        private Value inside(Value at, int size) {
            Value moved = padding.equals("reflection") ? reflected(at, size) : at;
            return b.min(b.max(moved, b.scalarLike(at, 0)), b.scalarLike(at, size - 1.0));
        }

        /// The pixels at whole places, times a weight; [batch, channels, rows, columns].
        Value at(Value row, Value column, @Nullable Value weight) {
            int[] d = x.shape().dims();
            Value r = b.convert(b.unary(UnaryKind.ROUND, inside(row, d[2])), DType.I32);
            Value k = b.convert(b.unary(UnaryKind.ROUND, inside(column, d[3])), DType.I32);
            Type type = new Type(DType.I32, r.shape());
            // rows of [batch · height · width, channels]
            Value flat =
                    b.add(b.multiply(b.add(b.multiply(b.iota(type, 0), b.constant(d[2])), r), b.constant(d[3])), k);
            Value pixels = b.reshape(b.transpose(x, 0, 2, 3, 1), d[0] * d[2] * d[3], d[1]);
            Value taken = b.transpose(b.gather(pixels, flat, 0), 0, 3, 1, 2);
            Value factor = weight;
            if (padding.equals("zeros")) {
                Value seen = b.binary(BinaryKind.AND, within(row, d[2]), within(column, d[3]));
                Value one = weight == null ? b.fullLike(row, 1) : weight;
                factor = b.select(seen, one, b.scalarLike(row, 0));
            }
            return factor == null ? taken : b.multiply(taken, b.broadcast(factor, taken.shape(), List.of(0, 2, 3)));
        }

        private Value within(Value at, int size) {
            return b.binary(
                    BinaryKind.AND,
                    b.compare(CompareKind.GREATER_EQUAL, at, b.scalarLike(at, 0)),
                    b.compare(CompareKind.LESS_EQUAL, at, b.scalarLike(at, size - 1.0)));
        }

        /// Σ over 2 × 2 or 4 × 4 neighbours.
        Value interpolate(Value row, Value column, boolean cubic) {
            // a clamped or mirrored place is interpolated there; cubic kernels move each neighbour instead
            boolean moved = !cubic && !padding.equals("zeros");
            Value y = moved ? inside(row, x.shape().dim(2)) : row;
            Value z = moved ? inside(column, x.shape().dim(3)) : column;
            Value top = b.unary(UnaryKind.FLOOR, y);
            Value left = b.unary(UnaryKind.FLOOR, z);
            Value sum = null;
            for (int i = cubic ? -1 : 0; i <= (cubic ? 2 : 1); i++) {
                Value r = b.add(top, i);
                Value vertical = kernel(b.unary(UnaryKind.ABS, b.subtract(y, r)), cubic);
                for (int j = cubic ? -1 : 0; j <= (cubic ? 2 : 1); j++) {
                    Value k = b.add(left, j);
                    Value weight = b.multiply(vertical, kernel(b.unary(UnaryKind.ABS, b.subtract(z, k)), cubic));
                    Value part = at(r, k, weight);
                    sum = sum == null ? part : b.add(sum, part);
                }
            }
            return java.util.Objects.requireNonNull(sum);
        }

        /// A triangle, or the cubic of Keys (1981) with a = −0.75.
        private Value kernel(Value d, boolean cubic) {
            if (!cubic) {
                return b.max(b.subtract(b.scalarLike(d, 1), d), b.scalarLike(d, 0));
            }
            double a = -0.75;
            Value near = b.add(b.multiply(b.multiply(b.add(b.multiply(d, a + 2), -(a + 3)), d), d), 1);
            Value inner = b.add(b.multiply(b.add(b.multiply(d, a), -5 * a), d), 8 * a);
            Value far = b.add(b.multiply(inner, d), -4 * a);
            return b.select(b.compare(CompareKind.LESS_EQUAL, d, b.scalarLike(d, 1)), near, far);
        }
    }

    /// Pools each region of x [batch, channels, height, width] into a grid of bins, each a mean or largest of sampled
    /// points.
    static Value align(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int[] d = x.shape().dims();
        int rows = Math.toIntExact(c.integer("output_height", 1));
        int columns = Math.toIntExact(c.integer("output_width", 1));
        int samples = Math.toIntExact(c.integer("sampling_ratio", 0));
        if (samples <= 0) {
            throw c.unsupported("a sampling ratio that follows from the regions");
        }
        double scale = c.number("spatial_scale", 1);
        boolean half = c.text("coordinate_transformation_mode", c.opset() >= 16 ? "half_pixel" : "output_half_pixel")
                .equals("half_pixel");
        Value regions = b.add(b.multiply(c.in(1), scale), half ? -0.5 : 0); // [regions, 4] = x₀ y₀ x₁ y₁
        int n = regions.shape().dim(0);
        Value y = points(b, regions, 1, 3, rows, samples, half); // [regions, rows · samples]
        Value z = points(b, regions, 0, 2, columns, samples, half);
        Shape shape = Shape.of(n, rows * samples, columns * samples);
        Value taken = gathered(
                b,
                x,
                c.in(2),
                b.broadcast(y, shape, List.of(0, 1)),
                b.broadcast(z, shape, List.of(0, 2)),
                c.text("mode", "avg").equals("max"));
        boolean max = c.text("mode", "avg").equals("max");
        Value split = b.reshape(taken, n, d[1], rows, samples, columns, samples);
        return max
                ? b.reduce(ReduceKind.MAX, split, 3, 5)
                : b.multiply(b.reduce(ReduceKind.SUM, split, 3, 5), 1.0 / (samples * samples));
    }

    /// The sampled places of all bins along one axis.
    private static Value points(GraphBuilder b, Value regions, int from, int to, int bins, int samples, boolean half) {
        Value start = b.slice(regions, 1, from, from + 1); // [regions, 1]
        Value length = b.subtract(b.slice(regions, 1, to, to + 1), start);
        if (!half) {
            length = b.max(length, b.scalarLike(length, 1));
        }
        int n = bins * samples;
        Type type = Type.f32(regions.shape().dim(0), n);
        Value share = b.multiply(b.add(b.iota(type, 1), 0.5), 1.0 / n);
        return b.add(b.multiply(share, length), start);
    }

    /// Bilinear samples of the image that each region names; places more than one pixel outside are 0.
    private static Value gathered(GraphBuilder b, Value x, Value batch, Value y, Value z, boolean max) {
        int[] d = x.shape().dims();
        Value seen = b.binary(BinaryKind.AND, near(b, y, d[2]), near(b, z, d[3]));
        Value row = clamped(b, y, d[2]);
        Value column = clamped(b, z, d[3]);
        Value top = b.unary(UnaryKind.FLOOR, row);
        Value left = b.unary(UnaryKind.FLOOR, column);
        Value pixels = b.reshape(b.transpose(x, 0, 2, 3, 1), d[0] * d[2] * d[3], d[1]);
        Value image = b.broadcast(b.convert(batch, DType.I32), y.shape(), List.of(0));
        Value sum = null;
        for (int i = 0; i < 4; i++) {
            Value r = clamped(b, b.add(top, i / 2), d[2]);
            Value k = clamped(b, b.add(left, i % 2), d[3]);
            Value lower = b.subtract(row, top);
            Value right = b.subtract(column, left);
            Value one = b.scalarLike(lower, 1);
            Value weight = b.multiply(
                    i / 2 == 1 ? lower : b.subtract(one, lower), i % 2 == 1 ? right : b.subtract(one, right));
            Value flat = b.add(
                    b.multiply(b.add(b.multiply(image, b.constant(d[2])), b.convert(r, DType.I32)), b.constant(d[3])),
                    b.convert(k, DType.I32));
            Value taken = b.transpose(b.gather(pixels, flat, 0), 0, 3, 1, 2);
            Value kept = b.select(seen, weight, b.scalarLike(weight, 0));
            Value part = b.multiply(taken, b.broadcast(kept, taken.shape(), List.of(0, 2, 3)));
            // the specification takes the largest of the weighted corners, not of the interpolated points
            sum = sum == null ? part : max ? b.max(sum, part) : b.add(sum, part);
        }
        return java.util.Objects.requireNonNull(sum);
    }

    private static Value near(GraphBuilder b, Value at, int size) {
        return b.binary(
                BinaryKind.AND,
                b.compare(CompareKind.GREATER_EQUAL, at, b.scalarLike(at, -1)),
                b.compare(CompareKind.LESS_EQUAL, at, b.scalarLike(at, size)));
    }

    private static Value clamped(GraphBuilder b, Value at, int size) {
        return b.min(b.max(at, b.scalarLike(at, 0)), b.scalarLike(at, size - 1.0));
    }
}
