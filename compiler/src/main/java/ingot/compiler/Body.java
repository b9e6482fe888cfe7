package ingot.compiler;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Writes the body of a fused kernel: from what it must store back to what it reads.
///
/// Done twice: once over the space in its finest division to learn all layouts, once over the coarsest space they
/// allow.
final class Body {
    /// A value, seen through a view if there is one, to store.
    record Store(Value value, @Nullable Op view, boolean outer, int buffer, Layout layout) {}

    /// A memory operand: the layout lies over the kernel's space and has its offset still.
    record Access(int buffer, Layout layout, boolean outer) {}

    /// A kernel, its operands, and the stored values it reads.
    record Code(Kernel kernel, List<Access> operands, Set<Value> reads) {}

    /// The view ops still to apply to a value, first to last.
    private record Chain(Op op, @Nullable Chain next) {}

    private record Key(int value, @Nullable Chain chain, boolean outer) {}

    /// Thrown when views do not merge as the space needs; whoever asked for the body chooses otherwise.
    private static final class NoView extends RuntimeException {
        private static final long serialVersionUID = 1;

        NoView() {
            super("views do not merge", null, false, false);
        }
    }

    private final Places places;
    private final Space space;
    private final Map<Value, Boolean> members;
    private final Set<Value> recomputed;
    private final @Nullable Shape outerShape; // null: the first time, finest division
    private final GraphBuilder b;
    private final Map<Key, Value> known = new HashMap<>();
    private final LinkedHashMap<Access, Value> accesses = new LinkedHashMap<>();
    private final List<Layout> iotas = new ArrayList<>();
    private final List<Boolean> iotaLevels = new ArrayList<>();
    private final Set<Value> reads = new java.util.LinkedHashSet<>();

    private Body(
            Places places,
            Space space,
            Map<Value, Boolean> members,
            Set<Value> recomputed,
            @Nullable Shape outerShape) {
        this.places = places;
        this.space = space;
        this.members = members;
        this.recomputed = recomputed;
        this.outerShape = outerShape;
        Space.Block block = space.block();
        b = new GraphBuilder(block == null ? "map" : block.isColumn() ? "column" : "row");
    }

    /// The kernel that stores these values of a space; empty when the views it needs are none.
    static Optional<Code> of(
            Places places, Space space, Map<Value, Boolean> members, Set<Value> recomputed, List<Store> stores) {
        try {
            Body fine = new Body(places, space, members, recomputed, null);
            fine.write(stores);
            Shape outer = fine.coarsest(stores);
            return Optional.of(new Body(places, space, members, recomputed, outer).write(stores));
        } catch (NoView e) {
            return Optional.empty();
        }
    }

    // ---- spaces

    private @Nullable Integer reducedAxis(int rank) {
        Space.Block block = space.block();
        return block == null ? null : block.isColumn() ? Integer.valueOf(0) : Integer.valueOf(rank - 1);
    }

    /// A layout over a value's shape as one over the kernel's space.
    private Layout place(Layout layout, boolean outer) {
        Optional<Layout> view = space.of(layout, outer);
        if (outerShape != null) {
            view = view.flatMap(x -> x.reshape(shape(outer)));
        }
        return view.orElseThrow(NoView::new);
    }

    /// The shape of body values.
    private Shape shape(boolean outer) {
        Space.Block block = space.block();
        Shape rest = outerShape;
        if (rest == null) {
            rest = space.shape(true);
        }
        if (outer || block == null) {
            return rest;
        }
        List<Integer> dims = new ArrayList<>(IntStream.of(rest.dims()).boxed().toList());
        dims.add(block.isColumn() ? 0 : dims.size(), block.length());
        return Shape.of(dims);
    }

    private Shape coarsest(List<Store> stores) {
        List<Layout> layouts = new ArrayList<>();
        accesses.keySet().forEach(access -> layouts.add(outerPart(access.layout(), access.outer())));
        for (int i = 0; i < iotas.size(); i++) {
            layouts.add(outerPart(iotas.get(i), iotaLevels.get(i)));
        }
        stores.forEach(store -> layouts.add(outerPart(place(store.layout(), store.outer()), store.outer())));
        return Layout.collapse(space.shape(true), layouts);
    }

    private Layout outerPart(Layout layout, boolean outer) {
        Integer axis = reducedAxis(layout.shape().rank());
        return outer || axis == null ? layout : layout.without(axis);
    }

    // ---- the body

    private Code write(List<Store> stores) {
        List<Access> operands = new ArrayList<>();
        List<Layout> writes = new ArrayList<>();
        for (int i = 0; i < stores.size(); i++) {
            Store store = stores.get(i);
            b.output(
                    Integer.toString(i),
                    value(store.value(), store.view() == null ? null : new Chain(store.view(), null), store.outer()));
        }
        operands.addAll(accesses.keySet());
        for (Store store : stores) {
            Access access = new Access(store.buffer(), place(store.layout(), store.outer()), store.outer());
            operands.add(access);
            writes.add(origin(access));
        }
        List<Layout> inputs = accesses.keySet().stream().map(Body::origin).toList();
        Graph body = b.build();
        Space.Block block = space.block();
        Kernel kernel = block == null
                ? new Kernel.Map(body, inputs, writes)
                : block.isColumn()
                        ? new Kernel.Column(body, shape(false), inputs, writes)
                        : new Kernel.Row(body, shape(false), inputs, writes);
        return new Code(kernel, operands, reads);
    }

    private static Layout origin(Access access) {
        return access.layout().withUnitSteps().atOrigin();
    }

    /// The body value of `value` seen through the views of `chain`, in the full or the outer space.
    private Value value(Value value, @Nullable Chain chain, boolean outer) {
        Value at = value;
        Chain views = chain;
        while (!at.equals(places.root(at))) {
            views = new Chain(at.op(), views);
            at = at.op().operands().getFirst();
        }
        Key key = new Key(at.id(), views, outer);
        Value found = known.get(key);
        if (found == null) {
            found = root(at, views, outer);
            known.put(key, found);
        }
        return found;
    }

    private Value root(Value root, @Nullable Chain chain, boolean outer) {
        Boolean level = members.get(root);
        if (level != null) {
            Layout map = apply(Layout.rowMajor(root.type()), chain);
            if (level == outer && Fusion.isIdentity(map, root)) {
                return compute(root, null, outer);
            }
            if (level && !outer && space.isRow(map)) {
                return alongRow(value(root, null, true));
            }
        }
        return switch (places.role(root)) {
            case CHEAP -> cheap(root, chain, outer);
            case FUSED -> recomputed.contains(root) ? compute(root, chain, outer) : read(root, chain, outer);
            case LEAF, ANCHOR -> read(root, chain, outer);
            case VIEW, ABSORBED -> throw new IllegalStateException("lower: " + root + " is no root");
        };
    }

    private static Layout apply(Layout layout, @Nullable Chain chain) {
        Layout result = layout;
        for (Chain link = chain; link != null; link = link.next()) {
            result = Layout.view(link.op(), result).orElseThrow(NoView::new);
        }
        return result;
    }

    /// The op of `value` on its operands, all seen through `chain`.
    private Value compute(Value value, @Nullable Chain chain, boolean outer) {
        if (value.op() instanceof Op.Reduce reduce) {
            Value x = value(reduce.x(), null, false);
            Integer axis = reducedAxis(x.shape().rank());
            if (chain != null || axis == null) {
                throw new NoView();
            }
            return b.add(new Op.Reduce(reduce.kind(), x, List.of(axis), reduce.segments()));
        }
        return b.add(Operands.replace(value.op(), operand -> value(operand, chain, outer)));
    }

    private Value cheap(Value root, @Nullable Chain chain, boolean outer) {
        return switch (root.op()) {
            case Op.Constant constant -> b.broadcast(b.constant(constant.data()), shape(outer), List.of());
            case Op.Iota iota -> iota(iota, chain, outer);
            default -> compute(root, chain, outer);
        };
    }

    /// An iota through views is affine in the axes of the space.
    private Value iota(Op.Iota iota, @Nullable Chain chain, boolean outer) {
        Layout index = Layout.rowMajor(
                        new Type(DType.I32, Shape.of(iota.type().shape().dim(iota.axis()))))
                .broadcast(iota.type().shape(), List.of(iota.axis()));
        Layout layout = place(apply(index, chain), outer);
        if (!outer && sameAlongRow(layout)) {
            return alongRow(affine(iota, layout.without(layout.shape().rank() - 1), true));
        }
        return affine(iota, layout, outer);
    }

    private Value affine(Op.Iota iota, Layout layout, boolean outer) {
        iotas.add(layout);
        iotaLevels.add(outer);
        DType dtype = iota.type().dtype();
        Shape shape = shape(outer);
        Value sum = null;
        for (int axis = 0; axis < shape.rank(); axis++) {
            long stride = layout.stride(axis);
            if (stride == 0 || shape.dim(axis) == 1) {
                continue;
            }
            boolean plain = stride == 1
                    && layout.offset() == 0
                    && IntStream.range(0, shape.rank())
                                    .filter(i -> shape.dim(i) != 1 && layout.stride(i) != 0)
                                    .count()
                            == 1;
            if (plain) {
                return b.iota(new Type(dtype, shape), axis);
            }
            Value term = b.iota(new Type(DType.I32, shape), axis);
            term = stride == 1 ? term : b.multiply(term, full((int) stride, shape));
            sum = sum == null ? term : b.add(sum, term);
        }
        if (sum == null) {
            sum = full((int) layout.offset(), shape);
        } else if (layout.offset() != 0) {
            sum = b.add(sum, full((int) layout.offset(), shape));
        }
        return b.convert(sum, dtype);
    }

    private Value full(int value, Shape shape) {
        return b.broadcast(b.constant(Tensor.scalar(value)), shape, List.of());
    }

    private Value read(Value root, @Nullable Chain chain, boolean outer) {
        reads.add(root);
        Layout layout = place(apply(places.layout(root), chain), outer);
        if (!outer && sameAlongRow(layout)) {
            return alongRow(
                    input(places.buffer(root), layout.without(layout.shape().rank() - 1), true));
        }
        return input(places.buffer(root), layout, outer);
    }

    private boolean sameAlongRow(Layout layout) {
        Space.Block block = space.block();
        int last = layout.shape().rank() - 1;
        return block != null
                && !block.isColumn()
                && (layout.stride(last) == 0 || layout.shape().dim(last) == 1);
    }

    private Value alongRow(Value outer) {
        Shape shape = shape(false);
        return b.add(new Op.Broadcast(
                outer, shape, IntStream.range(0, shape.rank() - 1).boxed().toList()));
    }

    private Value input(int buffer, Layout layout, boolean outer) {
        Access access = new Access(buffer, layout, outer);
        Value known = accesses.get(access);
        if (known == null) {
            known = b.input(Integer.toString(accesses.size()), layout.type());
            accesses.put(access, known);
        }
        return known;
    }
}
