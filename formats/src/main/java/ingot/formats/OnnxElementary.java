package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/// Trigonometric and hyperbolic functions that are no primitives, as composites with their own gradients.
final class OnnxElementary {
    private OnnxElementary() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("Tan", one(c -> c.b().divide(c.b().unary(UnaryKind.SIN, c.in(0)), c.b().unary(UnaryKind.COS, c.in(0)))));
        t.put("Atan", one(c -> atan(c.b(), c.in(0))));
        t.put("Asin", one(c -> asin(c.b(), c.in(0))));
        t.put("Acos", one(c -> acos(c.b(), c.in(0))));
        t.put("Sinh", one(c -> sinh(c.b(), c.in(0))));
        t.put("Cosh", one(c -> cosh(c.b(), c.in(0))));
        t.put("Asinh", one(c -> asinh(c.b(), c.in(0))));
        t.put("Acosh", one(c -> acosh(c.b(), c.in(0))));
        t.put("Atanh", one(c -> atanh(c.b(), c.in(0))));
    }

    /// arctan x by arguments in [0, tan π/8] and an odd polynomial (S. Moshier, Cephes `atanf`); derivative 1 / (1 +
    /// x²).
    static Value atan(GraphBuilder b, Value x) {
        return call(b, "atan", x, OnnxElementary::arcTangent, (g, in, _) -> inverse(g, g.add(g.multiply(in, in), 1)));
    }

    private static Value arcTangent(GraphBuilder b, Value x) {
        Value size = b.unary(UnaryKind.ABS, x);
        Value steep = b.compare(CompareKind.GREATER, size, b.scalarLike(x, Math.tan(3 * Math.PI / 8)));
        Value middle = b.compare(CompareKind.GREATER, size, b.scalarLike(x, Math.tan(Math.PI / 8)));
        Value one = b.scalarLike(x, 1);
        // arctan x = π/2 − arctan 1/x = π/4 + arctan (x − 1)/(x + 1)
        Value turned = b.negate(b.divide(one, b.max(size, one)));
        Value halved = b.divide(b.subtract(size, one), b.add(b.min(size, b.scalarLike(x, 4)), one));
        Value y = b.select(steep, turned, b.select(middle, halved, size));
        Value base = b.select(
                steep,
                b.scalarLike(x, Math.PI / 2),
                b.select(middle, b.scalarLike(x, Math.PI / 4), b.scalarLike(x, 0)));
        Value z = b.multiply(y, y);
        Value sum = polynomial(b, z, 8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1);
        Value positive = b.add(base, b.fma(b.multiply(sum, z), y, y));
        Value negative = b.compare(CompareKind.LESS, x, b.scalarLike(x, 0));
        return b.select(negative, b.negate(positive), positive);
    }

    /// arcsin x = arctan x / √(1 − x²), whose quotient is ±∞ at ±1; derivative 1 / √(1 − x²).
    static Value asin(GraphBuilder b, Value x) {
        return call(
                b,
                "asin",
                x,
                (g, in) -> arcTangent(g, g.divide(in, beside(g, in))),
                (g, in, _) -> inverse(g, beside(g, in)));
    }

    /// arccos x = 2·arctan √((1 − x) / (1 + x)), which keeps its accuracy at 1.
    static Value acos(GraphBuilder b, Value x) {
        return call(
                b,
                "acos",
                x,
                (g, in) -> {
                    Value one = g.scalarLike(in, 1);
                    Value ratio = g.divide(g.subtract(one, in), g.add(one, in));
                    return g.multiply(arcTangent(g, g.sqrt(ratio)), 2);
                },
                (g, in, _) -> g.negate(inverse(g, beside(g, in))));
    }

    /// √((1 − x)·(1 + x)).
    private static Value beside(GraphBuilder b, Value x) {
        Value one = b.scalarLike(x, 1);
        return b.sqrt(b.multiply(b.subtract(one, x), b.add(one, x)));
    }

    /// With u = e^|x| − 1: sinh |x| = (u + u / (u + 1)) / 2, accurate near 0.
    static Value sinh(GraphBuilder b, Value x) {
        return call(
                b,
                "sinh",
                x,
                (g, in) -> {
                    Value u = exponentialLess1(g, g.unary(UnaryKind.ABS, in));
                    Value half = g.scalarLike(in, 0.5);
                    // ½·e^|x| where u overflows beside it
                    Value small = g.multiply(half, g.add(u, g.divide(u, g.add(u, 1))));
                    Value large = g.compare(CompareKind.GREATER, g.unary(UnaryKind.ABS, in), g.scalarLike(in, 20));
                    return g.multiply(g.unary(UnaryKind.SIGN, in), g.select(large, halfExp(g, in), small));
                },
                (g, in, _) -> hyperbolicCosine(g, in));
    }

    static Value cosh(GraphBuilder b, Value x) {
        return call(b, "cosh", x, OnnxElementary::hyperbolicCosine, (g, in, _) -> sinh(g, in));
    }

    private static Value hyperbolicCosine(GraphBuilder b, Value x) {
        Value half = halfExp(b, x);
        return b.add(half, b.divide(b.scalarLike(x, 0.25), half));
    }

    /// ½·e^|x| as (e^(|x|/2))·½·e^(|x|/2), which overflows as late as the result does.
    private static Value halfExp(GraphBuilder b, Value x) {
        Value root = b.exp(b.multiply(b.unary(UnaryKind.ABS, x), 0.5));
        return b.multiply(b.multiply(root, 0.5), root);
    }

    /// sign x · log1p(|x| + x² / (1 + √(x² + 1))); derivative 1 / √(x² + 1).
    static Value asinh(GraphBuilder b, Value x) {
        return call(
                b,
                "asinh",
                x,
                (g, in) -> {
                    Value square = g.multiply(in, in);
                    Value root = g.sqrt(g.add(square, 1));
                    Value u = g.add(g.unary(UnaryKind.ABS, in), g.divide(square, g.add(root, 1)));
                    return g.multiply(g.unary(UnaryKind.SIGN, in), logOf1Plus(g, u));
                },
                (g, in, _) -> inverse(g, g.sqrt(g.add(g.multiply(in, in), 1))));
    }

    /// With t = x − 1: log1p(t + √(t·(x + 1))); derivative 1 / √(x² − 1).
    static Value acosh(GraphBuilder b, Value x) {
        return call(
                b,
                "acosh",
                x,
                (g, in) -> logOf1Plus(g, g.add(g.add(in, -1), rootLess1(g, in))),
                (g, in, _) -> inverse(g, rootLess1(g, in)));
    }

    /// √((x − 1)·(x + 1)).
    private static Value rootLess1(GraphBuilder b, Value x) {
        return b.sqrt(b.multiply(b.add(x, -1), b.add(x, 1)));
    }

    /// ½·log1p(2x / (1 − x)); derivative 1 / (1 − x²).
    static Value atanh(GraphBuilder b, Value x) {
        return call(
                b,
                "atanh",
                x,
                (g, in) -> {
                    Value ratio = g.divide(g.multiply(in, 2), g.subtract(g.scalarLike(in, 1), in));
                    return g.multiply(logOf1Plus(g, ratio), 0.5);
                },
                (g, in, _) -> inverse(g, g.subtract(g.scalarLike(in, 1), g.multiply(in, in))));
    }

    /// log(1 + x), accurate near 0; derivative 1 / (1 + x).
    static Value log1p(GraphBuilder b, Value x) {
        return call(b, "log1p", x, OnnxElementary::logOf1Plus, (g, in, _) -> inverse(g, g.add(in, 1)));
    }

    /// With w = 1 + x as rounded: x·log w / (w − 1), and x where w = 1 (W. Kahan).
    private static Value logOf1Plus(GraphBuilder b, Value x) {
        Value one = b.scalarLike(x, 1);
        Value w = b.add(x, one);
        Value tiny = b.compare(CompareKind.EQUAL, w, one);
        Value off = b.select(tiny, one, b.subtract(w, one));
        Value huge = b.compare(CompareKind.GREATER, b.unary(UnaryKind.ABS, x), b.scalarLike(x, 1e7));
        Value scaled = b.multiply(b.log(w), b.divide(x, off));
        return b.select(tiny, x, b.select(huge, b.log(w), scaled));
    }

    /// eˣ − 1, accurate near 0; derivative eˣ = y + 1.
    static Value expm1(GraphBuilder b, Value x) {
        return call(b, "expm1", x, OnnxElementary::exponentialLess1, (g, _, y) -> g.add(y, 1));
    }

    /// With w = eˣ as rounded: x·(w − 1) / log w; x where w = 1, w − 1 far from 0 (W. Kahan).
    private static Value exponentialLess1(GraphBuilder b, Value x) {
        Value one = b.scalarLike(x, 1);
        Value w = b.exp(x);
        Value off = b.subtract(w, one);
        Value tiny = b.compare(CompareKind.EQUAL, w, one);
        Value far = b.compare(CompareKind.GREATER, b.unary(UnaryKind.ABS, x), b.scalarLike(x, 1));
        Value safe = b.select(tiny, b.scalarLike(x, 2), b.select(far, b.scalarLike(x, 2), w));
        Value scaled = b.divide(b.multiply(x, off), b.log(safe));
        return b.select(far, off, b.select(tiny, x, scaled));
    }

    /// Horner's rule: the last coefficient is the constant term.
    private static Value polynomial(GraphBuilder b, Value x, double... coefficients) {
        Value sum = b.scalarLike(x, coefficients[0]);
        for (int i = 1; i < coefficients.length; i++) {
            sum = b.fma(sum, x, b.scalarLike(x, coefficients[i]));
        }
        return sum;
    }

    private static Value inverse(GraphBuilder b, Value x) {
        return b.divide(b.scalarLike(x, 1), x);
    }

    /// The derivative of a function of one argument, from the builder, x and y.
    @FunctionalInterface
    private interface Slope {
        Value of(GraphBuilder b, Value x, Value y);
    }

    @FunctionalInterface
    private interface Meaning {
        Value of(GraphBuilder b, Value x);
    }

    private static Value call(GraphBuilder b, String name, Value x, Meaning meaning, Slope slope) {
        GraphBuilder backward = new GraphBuilder(name + "Gradient");
        Value in = backward.input("0", x.type());
        Value out = backward.input("1", x.type());
        Value cotangent = backward.input("2", x.type());
        backward.output("0", backward.multiply(cotangent, slope.of(backward, in, out)));
        Function gradient = Function.of(name + "Gradient", backward.build());
        GraphBuilder forward = new GraphBuilder(name);
        forward.output("0", meaning.of(forward, forward.input("0", x.type())));
        return b.call(new Function(name, new TreeMap<>(), forward.build(), gradient), List.of(x))
                .getFirst();
    }
}
