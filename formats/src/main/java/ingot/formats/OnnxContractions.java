package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// Products of matrices and tensors.
final class OnnxContractions {
    private OnnxContractions() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("MatMul", one(c -> matmul(c.b(), c.in(0), c.in(1))));
        t.put("Gemm", one(OnnxContractions::gemm));
        t.put("Einsum", one(OnnxContractions::einsum));
        t.put("Det", one(c -> determinant(c.b(), c.in(0))));
    }

    /// NumPy's matmul: vectors gain an axis, leading axes broadcast. Integers are multiplied in F32, exact up to 2²⁴.
    static Value matmul(GraphBuilder b, Value x, Value y) {
        if (!x.dtype().isFloating()) {
            return b.convert(matmul(b, b.convert(x, DType.F32), b.convert(y, DType.F32)), x.dtype());
        }
        int rx = x.shape().rank();
        int ry = y.shape().rank();
        if (rx == 0 || ry == 0) {
            throw new IngotException("matmul of a scalar: " + x.shape() + " × " + y.shape());
        }
        if (ry <= 2) {
            return b.dot(x, y, List.of(), List.of(), List.of(rx - 1), List.of(Math.max(0, ry - 2)));
        }
        if (rx == 1) { // [k] × [batch…, k, n] → [batch…, n]
            return b.dot(y, x, List.of(), List.of(), List.of(ry - 2), List.of(0));
        }
        int[] batch = broadcast(x.shape(), y.shape());
        Value a = spread(b, x, batch);
        Value c = spread(b, y, batch);
        List<Integer> axes = IntStream.range(0, batch.length).boxed().toList();
        return b.dot(a, c, axes, axes, List.of(batch.length + 1), List.of(batch.length));
    }

    /// All but the last two axes, broadcast.
    private static int[] broadcast(Shape x, Shape y) {
        int rank = Math.max(x.rank(), y.rank()) - 2;
        int[] dims = new int[rank];
        for (int i = 0; i < rank; i++) {
            int back = rank - i + 2;
            int dx = back <= x.rank() ? x.dim(-back) : 1;
            int dy = back <= y.rank() ? y.dim(-back) : 1;
            if (dx != dy && dx != 1 && dy != 1) {
                throw new IngotException("matmul: leading axes of " + x + " × " + y + " do not broadcast");
            }
            dims[i] = dx == 1 ? dy : dx;
        }
        return dims;
    }

    private static Value spread(GraphBuilder b, Value x, int[] batch) {
        int[] dims = java.util.Arrays.copyOf(batch, batch.length + 2);
        dims[batch.length] = x.shape().dim(-2);
        dims[batch.length + 1] = x.shape().dim(-1);
        return b.broadcast(x, Shape.of(dims));
    }

    /// α·A′·B′ + β·C.
    private static Value gemm(OnnxCall c) {
        GraphBuilder b = c.b();
        boolean flipA = c.flag("transA");
        boolean flipB = c.flag("transB");
        DType dtype = c.in(0).dtype();
        Value x = b.convert(c.in(0), DType.F32);
        Value y = b.convert(c.in(1), DType.F32);
        Value product = b.dot(x, y, List.of(), List.of(), List.of(flipA ? 0 : 1), List.of(flipB ? 1 : 0));
        double alpha = c.number("alpha", 1);
        double beta = c.number("beta", 1);
        Value scaled = alpha == 1 ? product : b.multiply(product, alpha);
        if (!c.has(2) || beta == 0) {
            return b.convert(scaled, dtype);
        }
        Value bias = b.convert(c.in(2), DType.F32);
        return b.convert(b.add(scaled, beta == 1 ? bias : b.multiply(bias, beta)), dtype);
    }

    // ---- einsum

    /// A value with one letter per axis; letters of an ellipsis are digits.
    private record Term(Value value, String axes) {}

    private static Value einsum(OnnxCall c) {
        String equation = c.text("equation", "").replace(" ", "");
        int arrow = equation.indexOf("->");
        String[] inputs = (arrow < 0 ? equation : equation.substring(0, arrow)).split(",", -1);
        if (inputs.length != c.inputs()) {
            throw new IngotException(
                    "equation " + equation + " names " + inputs.length + " operands, there are " + c.inputs());
        }
        List<Term> terms = new ArrayList<>();
        String spread = "";
        for (int i = 0; i < inputs.length; i++) {
            Value value = c.in(i);
            int named = inputs[i].replace("...", "").length();
            int open = inputs[i].contains("...") ? value.shape().rank() - named : 0;
            if (named + open != value.shape().rank() || open > 9) {
                throw new IngotException("equation " + equation + " does not fit operand " + i + " : " + value.shape());
            }
            String digits = "012345678".substring(9 - open); // aligned at the end
            spread = digits.length() > spread.length() ? digits : spread;
            terms.add(diagonal(c.b(), new Term(value, inputs[i].replace("...", digits))));
        }
        String output = arrow < 0
                ? implicit(inputs, spread)
                : equation.substring(arrow + 2).replace("...", spread);
        Term result = terms.getFirst();
        for (int i = 1; i < terms.size(); i++) {
            StringBuilder needed = new StringBuilder(output);
            terms.subList(i + 1, terms.size()).forEach(term -> needed.append(term.axes()));
            result = contract(c.b(), result, terms.get(i), needed.toString());
        }
        result = summed(c.b(), result, output);
        String axes = result.axes();
        return c.b().transpose(result.value(), output.chars().map(axes::indexOf).toArray());
    }

    /// Without an arrow the result has the letters that occur once, in alphabetical order, after the ellipsis.
    private static String implicit(String[] inputs, String spread) {
        String all = String.join("", inputs).replace("...", "");
        StringBuilder once = new StringBuilder(spread);
        all.chars().sorted().filter(x -> all.indexOf(x) == all.lastIndexOf(x)).forEach(once::appendCodePoint);
        return once.toString();
    }

    /// A letter that occurs twice takes the diagonal of its axes.
    private static Term diagonal(GraphBuilder b, Term term) {
        String axes = term.axes();
        for (int j = 1; j < axes.length(); j++) {
            int i = axes.indexOf(axes.charAt(j));
            if (i < j) {
                Value x = term.value();
                ingot.ir.Type index = new ingot.ir.Type(DType.I32, x.shape());
                Value same = b.compare(ingot.ir.Op.CompareKind.EQUAL, b.iota(index, i), b.iota(index, j));
                Value kept = b.sum(b.select(same, x, b.scalarLike(x, 0)), j);
                return diagonal(b, new Term(kept, axes.substring(0, j) + axes.substring(j + 1)));
            }
        }
        return term;
    }

    /// Sums over the axes that are not in `kept`.
    private static Term summed(GraphBuilder b, Term term, String kept) {
        int[] gone = IntStream.range(0, term.axes().length())
                .filter(i -> kept.indexOf(term.axes().charAt(i)) < 0)
                .toArray();
        if (gone.length == 0) {
            return term;
        }
        StringBuilder axes = new StringBuilder();
        term.axes().chars().filter(x -> kept.indexOf(x) >= 0).forEach(axes::appendCodePoint);
        return new Term(b.sum(term.value(), gone), axes.toString());
    }

    private static Term contract(GraphBuilder b, Term x, Term y, String needed) {
        Term a = summed(b, x, needed + y.axes());
        Term c = summed(b, y, needed + x.axes());
        StringBuilder shared = new StringBuilder();
        StringBuilder inner = new StringBuilder();
        for (char axis : a.axes().toCharArray()) {
            if (c.axes().indexOf(axis) >= 0) {
                (needed.indexOf(axis) >= 0 ? shared : inner).append(axis);
            }
        }
        a = sized(b, a, c);
        c = sized(b, c, a);
        String both = shared.toString() + inner;
        StringBuilder axes = new StringBuilder(shared);
        (a.axes() + c.axes()).chars().filter(axis -> both.indexOf(axis) < 0).forEach(axes::appendCodePoint);
        DType dtype = a.value().dtype();
        Value product = b.dot(
                b.convert(a.value(), DType.F32),
                b.convert(c.value(), DType.F32),
                places(shared, a),
                places(shared, c),
                places(inner, a),
                places(inner, c));
        return new Term(b.convert(product, dtype), axes.toString());
    }

    private static List<Integer> places(CharSequence letters, Term term) {
        return letters.chars().mapToObj(term.axes()::indexOf).toList();
    }

    /// Axes of size 1 grow to the size that the other operand has.
    private static Term sized(GraphBuilder b, Term term, Term other) {
        int[] dims = term.value().shape().dims();
        for (int i = 0; i < dims.length; i++) {
            int j = other.axes().indexOf(term.axes().charAt(i));
            dims[i] = dims[i] == 1 && j >= 0 ? other.value().shape().dim(j) : dims[i];
        }
        return new Term(b.broadcast(term.value(), Shape.of(dims)), term.axes());
    }

    // ---- determinant

    /// Of matrices [..., n, n] up to 4 × 4, along the first row (Laplace); larger ones would need pivots.
    private static Value determinant(GraphBuilder b, Value x) {
        int n = x.shape().dim(-1);
        if (n > 4 || n != x.shape().dim(-2)) {
            throw new IngotException("the determinant of " + x.shape() + " is not supported; up to 4 × 4 is");
        }
        int[] rows = IntStream.range(0, n).toArray();
        int rank = x.shape().rank();
        Value found = minor(b, x, 0, rows);
        return b.reshape(found, x.shape().without(List.of(rank - 2, rank - 1)));
    }

    /// The determinant of the rows from `row` on and the given columns: [..., 1, 1].
    private static Value minor(GraphBuilder b, Value x, int row, int[] columns) {
        Value total = b.fullLike(element(b, x, 0, 0), columns.length == 0 ? 1 : 0);
        for (int i = 0; i < columns.length; i++) {
            int column = columns[i];
            int[] others =
                    IntStream.of(columns).filter(other -> other != column).toArray();
            Value term = b.multiply(element(b, x, row, column), minor(b, x, row + 1, others));
            total = i % 2 == 0 ? b.add(total, term) : b.subtract(total, term);
        }
        return total;
    }

    private static Value element(GraphBuilder b, Value x, int row, int column) {
        return b.slice(b.slice(x, -2, row, row + 1), -1, column, column + 1);
    }
}
