package ingot.compiler;

import ingot.compiler.Kernel.Matmul.Old;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Shape;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Kernels of the ops that are not fused: contractions, gathers, concatenations, copies, and plain loops for the rest.
final class Anchors {
    /// Makes the calls that store a value, seen through a view if there is one, as `to` in a buffer.
    interface Copy {
        List<Lowering.Draft> of(Value value, @Nullable Op view, int buffer, Layout to);
    }

    /// An operand in memory.
    private record Located(int buffer, Layout layout) {
        Lowering.Part part() {
            return new Lowering.Part(buffer, layout.byteOffset());
        }
    }

    private final Places places;
    private final Buffers buffers;
    private final Copy copy;

    Anchors(Places places, Buffers buffers, Copy copy) {
        this.places = places;
        this.buffers = buffers;
        this.copy = copy;
    }

    /// True for ops whose result may have any strides.
    static boolean writesStrided(Op op) {
        return switch (op) {
            case Op.Dot dot -> isMatmul(dot);
            case Op.Convolution convolution -> Convolutions.isProduct(convolution);
            case Op.Gather gather -> Canonical.isNative(gather.x().dtype());
            case Op.ScatterAdd scatter -> isScatter(scatter);
            case Op.Concatenate concatenate ->
                Canonical.isNative(concatenate.operands().getFirst().dtype());
            case Op.Pad pad -> Canonical.isNative(pad.x().dtype());
            default -> false;
        };
    }

    private static boolean isMatmul(Op.Dot dot) {
        return dot.a().dtype() == DType.F32
                && dot.a().shape().elements() > 0
                && dot.b().shape().elements() > 0;
    }

    private static boolean isScatter(Op.ScatterAdd scatter) {
        return scatter.updates().dtype() == DType.F32
                && scatter.updates().shape().elements() > 0;
    }

    List<Lowering.Draft> lower(Value value) {
        List<Lowering.Draft> calls = new ArrayList<>();
        Places.Product product = places.product(value);
        if (product != null) {
            dot(value, product, calls);
            return calls;
        }
        switch (value.op()) {
            case Op.Dot dot when isMatmul(dot) -> dot(value, new Places.Product(value, null, null), calls);
            case Op.Convolution convolution when writesStrided(convolution) -> convolution(value, convolution, calls);
            case Op.Gather gather when writesStrided(gather) -> gather(value, gather, calls);
            case Op.ScatterAdd scatter when isScatter(scatter) -> scatter(value, scatter, calls);
            case Op.Concatenate concatenate when writesStrided(concatenate) -> concatenate(value, concatenate, calls);
            case Op.Pad pad when writesStrided(pad) -> pad(value, pad, calls);
            case Op.Reshape reshape -> {
                Layout to = places.layout(value).reshape(reshape.x().shape()).orElseThrow();
                calls.addAll(copy.of(reshape.x(), null, places.buffer(value), to));
            }
            default -> loop(value, calls);
        }
        return calls;
    }

    // ---- operands

    /// Where an operand lies; cheap values are stored first.
    private Located locate(Value operand, List<Lowering.Draft> calls) {
        if (places.role(places.root(operand)) == Places.Role.CHEAP) {
            return copied(operand, calls);
        }
        return new Located(places.buffer(operand), places.layout(operand));
    }

    private Located rowMajor(Value operand, List<Lowering.Draft> calls) {
        Located located = locate(operand, calls);
        return located.layout().isRowMajor() ? located : copied(operand, calls);
    }

    private Located copied(Value operand, List<Lowering.Draft> calls) {
        Layout layout = Layout.rowMajor(operand.type());
        int buffer = buffers.add(operand.type().bytes());
        calls.addAll(copy.of(operand, null, buffer, layout));
        return new Located(buffer, layout);
    }

    /// A copy whose axes lie in the given order, outermost first.
    private Located copied(Value operand, List<Integer> order, List<Lowering.Draft> calls) {
        Shape stored = Shape.of(order.stream().map(operand.shape()::dim).toList());
        Integer[] inverse = new Integer[order.size()];
        for (int i = 0; i < inverse.length; i++) {
            inverse[order.get(i)] = i;
        }
        Layout layout = Layout.rowMajor(operand.type().with(stored)).transpose(List.of(inverse));
        int buffer = buffers.add(operand.type().bytes());
        calls.addAll(copy.of(operand, null, buffer, layout));
        return new Located(buffer, layout);
    }

    // ---- kernels

    private void dot(Value result, Places.Product product, List<Lowering.Draft> calls) {
        Op.Dot dot = (Op.Dot) product.dot().op();
        Shape shape = product.dot().shape();
        Value bias = product.bias();
        Old old = product.old() != null ? Old.ADDED : dot.start() != null ? Old.CONTINUED : Old.REPLACED;
        Located a = locate(dot.a(), calls);
        Located b = locate(dot.b(), calls);
        Layout c = places.layout(result).reshape(shape).orElseThrow();
        Located row = bias == null ? null : new Located(places.buffer(bias), places.layout(bias));
        Layout biasLayout = row == null ? null : row.layout().reshape(shape).orElseThrow();
        Optional<Contraction.Plan> plan = Contraction.plan(dot, a.layout(), b.layout(), c, biasLayout, old);
        if (plan.isEmpty()) {
            a = copied(dot.a(), Contraction.orderA(dot, dot.a().shape().rank()), calls);
            b = copied(dot.b(), Contraction.orderB(dot, dot.b().shape().rank()), calls);
            plan = Contraction.plan(dot, a.layout(), b.layout(), c, biasLayout, old);
        }
        Contraction.Plan found = plan.orElseThrow();
        if (dot.start() != null) {
            calls.addAll(copy.of(dot.start(), null, places.buffer(result), c));
        }
        List<Lowering.Part> parts = new ArrayList<>();
        parts.add(new Lowering.Part(found.exchanged() ? b.buffer() : a.buffer(), found.a()));
        parts.add(new Lowering.Part(found.exchanged() ? a.buffer() : b.buffer(), found.b()));
        if (row != null) {
            parts.add(new Lowering.Part(row.buffer(), found.bias()));
        }
        parts.add(new Lowering.Part(places.buffer(result), found.c()));
        calls.add(new Lowering.Draft(found.kernel(), parts));
    }

    private void convolution(Value value, Op.Convolution convolution, List<Lowering.Draft> calls) {
        Located x = locate(convolution.x(), calls);
        Located kernel = locate(convolution.kernel(), calls);
        Layout out = places.layout(value);
        for (Convolutions.Part part : Convolutions.parts(convolution, x.layout(), kernel.layout(), out)) {
            calls.add(new Lowering.Draft(
                    part.kernel(),
                    List.of(
                            new Lowering.Part(kernel.buffer(), part.weights()),
                            new Lowering.Part(x.buffer(), part.windows()),
                            new Lowering.Part(places.buffer(value), part.out()))));
        }
    }

    private void gather(Value value, Op.Gather gather, List<Lowering.Draft> calls) {
        Located x = locate(gather.x(), calls);
        Located indices = locate(gather.indices(), calls);
        int positions = gather.indices().shape().rank();
        Layout table = x.layout().transpose(axisFirst(gather.x().shape().rank(), gather.axis(), 1));
        Layout out = places.layout(value).transpose(axisFirst(value.shape().rank(), gather.axis(), positions));
        Rows rows = Rows.of(table, indices.layout(), out);
        calls.add(new Lowering.Draft(
                new Kernel.Gather(rows.table(), rows.indices(), rows.rows()),
                List.of(x.part(), indices.part(), new Located(places.buffer(value), out).part())));
    }

    private void scatter(Value value, Op.ScatterAdd scatter, List<Lowering.Draft> calls) {
        Located indices = locate(scatter.indices(), calls);
        Located updates = locate(scatter.updates(), calls);
        int positions = scatter.indices().shape().rank();
        Layout table = places.layout(value).transpose(axisFirst(value.shape().rank(), scatter.axis(), 1));
        Layout moved =
                updates.layout().transpose(axisFirst(scatter.updates().shape().rank(), scatter.axis(), positions));
        Rows rows = Rows.of(table, indices.layout(), moved);
        calls.add(new Lowering.Draft(
                new Kernel.ScatterAdd(rows.indices(), rows.rows(), rows.table(), scatter.segments()),
                List.of(indices.part(), updates.part(), new Located(places.buffer(value), table).part())));
    }

    /// `count` axes from `axis` on, then those before, then those after.
    private static List<Integer> axisFirst(int rank, int axis, int count) {
        List<Integer> order = new ArrayList<>();
        IntStream.range(axis, axis + count).forEach(order::add);
        IntStream.range(0, axis).forEach(order::add);
        IntStream.range(axis + count, rank).forEach(order::add);
        return order;
    }

    /// The layouts of a gather or scatter with merged axes: table [r, i…], indices [p…], rows [p…, i…].
    private record Rows(Layout table, Layout indices, Layout rows) {
        static Rows of(Layout table, Layout indices, Layout rows) {
            int positions = indices.shape().rank();
            Layout place = rows;
            for (int i = rows.shape().rank() - 1; i >= positions; i--) {
                place = place.without(i);
            }
            Layout slice = rows;
            for (int i = 0; i < positions; i++) {
                slice = slice.without(0);
            }
            Shape p = Layout.collapse(indices.shape(), List.of(indices, place));
            Shape i = Layout.collapse(slice.shape(), List.of(table.without(0), slice));
            List<Integer> table2 = new ArrayList<>(List.of(table.shape().dim(0)));
            List<Integer> rows2 = new ArrayList<>();
            IntStream.of(p.dims()).forEach(rows2::add);
            IntStream.of(i.dims()).forEach(dim -> {
                table2.add(dim);
                rows2.add(dim);
            });
            return new Rows(origin(table, Shape.of(table2)), origin(indices, p), origin(rows, Shape.of(rows2)));
        }

        private static Layout origin(Layout layout, Shape shape) {
            return layout.reshape(shape).orElseThrow().withUnitSteps().atOrigin();
        }
    }

    private void concatenate(Value value, Op.Concatenate concatenate, List<Lowering.Draft> calls) {
        for (int i = 0; i < concatenate.operands().size(); i++) {
            Value operand = concatenate.operands().get(i);
            Layout to = Places.part(concatenate, i, places.layout(value));
            boolean there = places.role(places.root(operand)) != Places.Role.CHEAP
                    && places.buffer(operand) == places.buffer(value);
            if (!there) {
                calls.addAll(copy.of(operand, null, places.buffer(value), to));
            }
        }
    }

    /// Fills everything, then writes the elements that are not padding.
    private void pad(Value value, Op.Pad pad, List<Lowering.Draft> calls) {
        Layout whole = places.layout(value);
        Op everywhere = new Op.Broadcast(pad.padding(), value.shape(), List.of());
        calls.addAll(copy.of(pad.padding(), everywhere, places.buffer(value), whole));
        List<Integer> limits = new ArrayList<>();
        List<Integer> strides = new ArrayList<>();
        for (int i = 0; i < pad.low().size(); i++) {
            int size = pad.x().shape().dim(i);
            int step = pad.interior().get(i) + 1;
            strides.add(step);
            limits.add(pad.low().get(i) + (size == 0 ? 0 : (size - 1) * step + 1));
        }
        calls.addAll(copy.of(pad.x(), null, places.buffer(value), whole.slice(pad.low(), limits, strides)));
    }

    /// The op itself over row-major operands.
    private void loop(Value value, List<Lowering.Draft> calls) {
        GraphBuilder b = new GraphBuilder("loop");
        Map<Value, Value> inputs = new HashMap<>();
        List<Layout> reads = new ArrayList<>();
        List<Lowering.Part> parts = new ArrayList<>();
        for (Value operand : value.op().operands()) {
            if (!inputs.containsKey(operand)) {
                Located located = rowMajor(operand, calls);
                inputs.put(operand, b.input(Integer.toString(reads.size()), operand.type()));
                reads.add(Layout.rowMajor(operand.type()));
                parts.add(located.part());
            }
        }
        Op op = Operands.replace(value.op(), operand -> {
            Value input = inputs.get(operand);
            if (input == null) {
                throw new IllegalStateException("lower: no operand " + operand);
            }
            return input;
        });
        b.output("0", b.add(op));
        Graph body = b.build();
        parts.add(new Located(places.buffer(value), places.layout(value)).part());
        calls.add(new Lowering.Draft(new Kernel.Loop(body, reads, List.of(Layout.rowMajor(value.type()))), parts));
    }
}
