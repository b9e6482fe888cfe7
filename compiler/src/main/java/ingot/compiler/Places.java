package ingot.compiler;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Where every value of a canonical graph lies, if it is stored, and what kind of work it is.
///
/// Storage is chosen backwards: a value whose only use is a transposition (and reshape) is stored in the order the user
/// wants, one whose only use is a concatenation is stored inside of its result. Views are then layouts of the storage
/// of their root.
final class Places {
    /// What lowering does with a value.
    enum Role {
        /// Memory given from outside: inputs, weights, constant tensors.
        LEAF,
        /// Constants, iotas and a few simple ops on them: recomputed wherever they are used.
        CHEAP,
        /// A layout of its root.
        VIEW,
        /// Pointwise ops and reductions: members of map, row and column kernels.
        FUSED,
        /// A kernel of its own, or several; a reshape that needs a copy.
        ANCHOR,
        /// A contraction that its bias addition includes.
        ABSORBED
    }

    /// A piece of a buffer.
    record Place(int buffer, Layout layout) {}

    /// A contraction and what its kernel adds: a row, or what the memory of the result holds already.
    record Product(
            Value dot, @Nullable Value bias, @Nullable Value old) {}

    static final int CHEAP_WEIGHT = 12;

    private final List<List<Value>> users;
    private final Set<Value> outputs;
    private final Buffers buffers;
    private final Role[] roles;
    private final Value[] roots;
    private final @Nullable Place[] wanted;
    private final @Nullable Place[] places; // of stored roots
    private final @Nullable Layout[] layouts; // of stored values and their views, in the buffer of their root
    private final @Nullable Layout[] maps; // of all values but views that are none: in a row-major root
    private final List<List<Layout>> leaves; // of cheap values: the maps of the iotas they are made of
    private final @Nullable Product[] products;

    Places(Graph graph, Buffers buffers) {
        int n = graph.values().size();
        this.buffers = buffers;
        users = graph.users();
        outputs = new HashSet<>(graph.outputs().values());
        roles = new Role[n];
        roots = new Value[n];
        wanted = new Place[n];
        places = new Place[n];
        layouts = new Layout[n];
        maps = new Layout[n];
        products = new Product[n];
        leaves = new ArrayList<>();
        for (Value value : graph.values()) {
            roles[value.id()] = classify(value);
        }
        for (int id = n - 1; id >= 0; id--) {
            if (roles[id] == Role.FUSED || roles[id] == Role.ANCHOR) {
                Value value = graph.values().get(id);
                Place place = want(value);
                places[id] = accepts(value, place.layout()) ? place : fresh(value);
            }
        }
        for (Value value : graph.values()) {
            locate(value);
        }
    }

    Role role(Value value) {
        return roles[value.id()];
    }

    /// The value whose memory a view shows; any other value itself.
    Value root(Value value) {
        return roots[value.id()];
    }

    /// The value's elements in the buffer of its root, which must be stored.
    Layout layout(Value value) {
        Layout layout = layouts[value.id()];
        if (layout == null) {
            throw new IllegalStateException("lower: " + value + " = " + value.op() + " has no place");
        }
        return layout;
    }

    int buffer(Value value) {
        Place place = places[root(value).id()];
        if (place == null) {
            throw new IllegalStateException("lower: " + value + " = " + value.op() + " has no place");
        }
        return place.buffer();
    }

    /// The value's elements in its root's, were that row-major: which element is which. Null when that is no layout.
    @Nullable
    Layout map(Value value) {
        return maps[value.id()];
    }

    /// Of a cheap value: how each iota below it is indexed.
    List<Layout> leaves(Value value) {
        return leaves.get(value.id());
    }

    boolean isOutput(Value value) {
        return outputs.contains(value);
    }

    /// Of an addition that is done by the kernel of a contraction: that contraction.
    @Nullable
    Product product(Value value) {
        return products[value.id()];
    }

    /// The values a kernel for `value` reads.
    List<Value> reads(Value value) {
        Product product = product(value);
        if (product == null) {
            return value.op().operands();
        }
        List<Value> reads = new ArrayList<>(product.dot().op().operands());
        if (product.bias() != null) {
            reads.add(product.bias());
        }
        if (product.old() != null) {
            reads.add(product.old());
        }
        return reads;
    }

    /// The values that compute with `value` or a view of it.
    Set<Value> consumers(Value value) {
        Set<Value> found = new LinkedHashSet<>();
        consumers(value, found);
        return found;
    }

    private void consumers(Value value, Set<Value> found) {
        for (Value user : users.get(value.id())) {
            if (role(user) == Role.VIEW) {
                consumers(user, found);
            } else {
                found.add(user);
            }
        }
    }

    /// True when `value` or a view of it is a result of the graph.
    boolean isSeen(Value value) {
        return isOutput(value)
                || users.get(value.id()).stream().anyMatch(user -> role(user) == Role.VIEW && isSeen(user));
    }

    // ---- roles

    static boolean isPointwise(Op op) {
        return op instanceof Op.Unary
                || op instanceof Op.Binary
                || op instanceof Op.Fma
                || op instanceof Op.Compare
                || op instanceof Op.Select
                || op instanceof Op.Convert
                || op instanceof Op.Bitcast;
    }

    private Role classify(Value value) {
        Op op = value.op();
        boolean computable = Canonical.isNative(value.dtype())
                && op.operands().stream().allMatch(x -> Canonical.isNative(x.dtype()));
        boolean empty = value.shape().elements() == 0;
        return switch (op) {
            case Op.Input _, Op.Weight _ -> Role.LEAF;
            case Op.Constant _ -> computable && value.shape().rank() == 0 ? Role.CHEAP : Role.LEAF;
            case Op _ when empty -> Role.ANCHOR;
            case Op.Iota _ -> Role.CHEAP;
            case Op.Reshape x -> cheap(x.x()) ? Role.CHEAP : Role.VIEW;
            case Op.Broadcast _, Op.Transpose _, Op.Slice _, Op.Reverse _ ->
                !computable ? Role.ANCHOR : op.operands().stream().allMatch(this::cheap) ? Role.CHEAP : Role.VIEW;
            case Op.Unary _, Op.Binary _, Op.Fma _, Op.Compare _, Op.Select _, Op.Convert _, Op.Bitcast _ ->
                !computable ? Role.ANCHOR : isRecomputed(value) ? Role.CHEAP : Role.FUSED;
            case Op.Reduce x -> computable && x.x().shape().elements() > 0 ? Role.FUSED : Role.ANCHOR;
            case Op.Dot _, Op.Convolution _, Op.Gather _, Op.ScatterAdd _, Op.TakeAlong _, Op.AddAlong _ -> Role.ANCHOR;
            case Op.Pad _, Op.Concatenate _, Op.ArgSort _, Op.Cumulative _, Op.RandomBits _ -> Role.ANCHOR;
            case Op.ReduceWindow _, Op.ScatterWindowMax _ -> Role.ANCHOR;
            case Op.Composite _, Op.Result _, Op.Custom _ -> Role.ANCHOR;
        };
    }

    /// A few simple ops on constants and iotas.
    private boolean isRecomputed(Value value) {
        return value.op().operands().stream().allMatch(this::cheap) && Weights.of(value, this::cheap) <= CHEAP_WEIGHT;
    }

    private boolean cheap(Value value) {
        return roles[value.id()] == Role.CHEAP;
    }

    // ---- storage, from the users

    private Place fresh(Value value) {
        return new Place(buffers.add(value.type().bytes()), Layout.rowMajor(value.type()));
    }

    /// The place that the only user of `value` would like, or a new one.
    private Place want(Value value) {
        Place known = wanted[value.id()];
        if (known == null) {
            known = wish(value).orElseGet(() -> fresh(value));
            wanted[value.id()] = known;
        }
        return known;
    }

    private Optional<Place> wish(Value value) {
        if (isOutput(value)
                || value.shape().elements() == 0
                || users.get(value.id()).size() != 1) {
            return Optional.empty();
        }
        Value user = users.get(value.id()).getFirst();
        if (user.op() instanceof Op.Concatenate concatenate && Canonical.isNative(value.dtype())) {
            List<Value> parts = concatenate.operands();
            if (parts.indexOf(value) != parts.lastIndexOf(value)) {
                return Optional.empty();
            }
            Place whole = placeOf(user);
            return Optional.of(new Place(whole.buffer(), part(concatenate, parts.indexOf(value), whole.layout())));
        }
        if (roles[user.id()] == Role.VIEW) {
            Place after = want(user);
            return Layout.origin(user.op(), value.shape(), after.layout())
                    .map(layout -> new Place(after.buffer(), layout));
        }
        return Optional.empty();
    }

    private Place placeOf(Value value) {
        Place place = places[value.id()];
        if (place == null) {
            throw new IllegalStateException("lower: " + value + " = " + value.op() + " has no place");
        }
        return place;
    }

    /// The layout of one operand inside of a concatenation.
    static Layout part(Op.Concatenate concatenate, int index, Layout whole) {
        int start = 0;
        for (int i = 0; i < index; i++) {
            start += concatenate.operands().get(i).shape().dim(concatenate.axis());
        }
        Value operand = concatenate.operands().get(index);
        return whole.part(concatenate.axis(), start, operand.shape().dim(concatenate.axis()));
    }

    /// Kernels write well when the last axis, or for contractions one of the last two, is contiguous; loops write
    /// row-major.
    private boolean accepts(Value value, Layout layout) {
        if (layout.isRowMajor()) {
            return true;
        }
        boolean strided = roles[value.id()] == Role.FUSED
                || Anchors.writesStrided(value.op())
                || value.op() instanceof Op.Reshape && Canonical.isNative(value.dtype());
        return strided && contiguous(layout, value.op() instanceof Op.Dot ? 2 : 1);
    }

    private static boolean contiguous(Layout layout, int axes) {
        int seen = 0;
        for (int i = layout.shape().rank() - 1; i >= 0 && seen < axes; i--) {
            if (layout.shape().dim(i) != 1) {
                if (layout.stride(i) == 1) {
                    return true;
                }
                seen++;
            }
        }
        return seen == 0;
    }

    // ---- layouts, from the operands

    private void locate(Value value) {
        int id = value.id();
        roots[id] = value;
        maps[id] = Layout.rowMajor(value.type());
        leaves.add(List.of());
        switch (roles[id]) {
            case LEAF -> {
                int buffer = buffers.leaf(value);
                places[id] = new Place(buffer, Layout.rowMajor(value.type()));
                layouts[id] = Layout.rowMajor(value.type());
            }
            case CHEAP -> locateCheap(value);
            case VIEW -> locateView(value);
            case FUSED -> {
                layouts[id] = placeOf(value).layout();
                absorb(value);
            }
            case ANCHOR -> layouts[id] = placeOf(value).layout();
            case ABSORBED ->
                throw new IllegalStateException("lower: " + value + " is absorbed by what comes before it");
        }
    }

    private void locateView(Value value) {
        int id = value.id();
        Value x = value.op().operands().getFirst();
        Layout before = layouts[x.id()];
        if (before == null) { // a view of a cheap value that had to be stored would have a layout
            throw new IllegalStateException("lower: " + x + " has no place");
        }
        Optional<Layout> after = Layout.view(value.op(), before);
        if (after.isEmpty()) {
            store(value);
            return;
        }
        roots[id] = roots[x.id()];
        layouts[id] = after.get();
        Layout map = maps[x.id()];
        maps[id] = map == null ? null : Layout.view(value.op(), map).orElse(null);
    }

    private void locateCheap(Value value) {
        int id = value.id();
        Op op = value.op();
        if (op instanceof Op.Iota iota) {
            Layout index = Layout.rowMajor(
                            new Type(DType.I32, Shape.of(iota.type().shape().dim(iota.axis()))))
                    .broadcast(iota.type().shape(), List.of(iota.axis()));
            leaves.set(id, List.of(index));
            return;
        }
        List<Layout> found = new ArrayList<>();
        for (Value operand : op.operands()) {
            if (roles[operand.id()] != Role.CHEAP) { // its operand had to be stored after all
                roles[id] = isPointwise(op) ? Role.FUSED : Role.VIEW;
                if (roles[id] == Role.FUSED) {
                    places[id] = fresh(value);
                    layouts[id] = placeOf(value).layout();
                } else {
                    locateView(value);
                }
                return;
            }
            found.addAll(leaves.get(operand.id()));
        }
        if (isPointwise(op) || op instanceof Op.Constant) {
            leaves.set(id, List.copyOf(new LinkedHashSet<>(found)));
            return;
        }
        List<Layout> seen = new ArrayList<>();
        for (Layout leaf : found) {
            Optional<Layout> after = Layout.view(op, leaf);
            if (after.isEmpty()) {
                store(value);
                return;
            }
            seen.add(after.get());
        }
        leaves.set(id, seen);
        Value x = op.operands().getFirst();
        roots[id] = roots[x.id()];
        Layout map = maps[x.id()];
        maps[id] = map == null ? null : Layout.view(op, map).orElse(null);
    }

    /// A reshape that is no view: its elements are copied.
    private void store(Value value) {
        int id = value.id();
        Place place = want(value);
        Shape from = value.op().operands().getFirst().shape();
        boolean writable =
                accepts(value, place.layout()) && place.layout().reshape(from).isPresent();
        places[id] = writable ? place : fresh(value);
        roles[id] = Role.ANCHOR;
        layouts[id] = placeOf(value).layout();
    }

    // ---- sums with a contraction

    /// Recognises dot + row and dot + dot: additions to a contraction that nobody else sees.
    private void absorb(Value value) {
        if (!(value.op() instanceof Op.Binary add) || add.kind() != Op.BinaryKind.ADD || value.dtype() != DType.F32) {
            return;
        }
        // Of two contractions the later one adds itself to the earlier one.
        boolean ordered = roots[add.a().id()].id() > roots[add.b().id()].id();
        Value later = ordered ? add.a() : add.b();
        Value earlier = ordered ? add.b() : add.a();
        if (!addRow(value, later, earlier) && !addRow(value, earlier, later) && !addInPlace(value, later, earlier)) {
            addInPlace(value, earlier, later);
        }
    }

    private boolean addRow(Value sum, Value product, Value bias) {
        Value dot = roots[product.id()];
        return layouts[bias.id()] != null
                && isHidden(product, dot)
                && !roots[bias.id()].equals(dot)
                && absorb(sum, new Product(dot, bias, null));
    }

    /// sum = old + dot in the memory of the sum, where `old` is stored first.
    private boolean addInPlace(Value sum, Value product, Value summand) {
        Value dot = roots[product.id()];
        Value old = roots[summand.id()];
        boolean storable = roles[old.id()] == Role.ANCHOR
                && (old.op() instanceof Op.Dot || old.op() instanceof Op.ScatterAdd || products[old.id()] != null);
        if (!storable || old.equals(dot) || !isHidden(product, dot) || !isHidden(summand, old)) {
            return false;
        }
        Optional<Layout> to = layout(sum).reshape(old.shape());
        if (to.isEmpty() || !accepts(old, to.get()) || !absorb(sum, new Product(dot, null, old))) {
            return false;
        }
        move(old, placeOf(sum).buffer(), to.get());
        return true;
    }

    /// Stores a value elsewhere, and with it what it is added to.
    private void move(Value value, int buffer, Layout layout) {
        places[value.id()] = new Place(buffer, layout);
        layouts[value.id()] = layout;
        Product product = products[value.id()];
        if (product != null && product.old() != null) {
            Value old = product.old();
            move(old, buffer, layout.reshape(old.shape()).orElseThrow());
        }
    }

    /// True when `view` is `root` or regroups its axes, and this is the only use of the root.
    private boolean isHidden(Value view, Value root) {
        for (Value value = view; ; value = value.op().operands().getFirst()) {
            if (isOutput(value) || users.get(value.id()).size() != 1) {
                return false;
            }
            if (value.equals(root)) {
                return true;
            }
            if (!(value.op() instanceof Op.Reshape)) {
                return false;
            }
        }
    }

    private boolean absorb(Value sum, Product product) {
        if (!(product.dot().op() instanceof Op.Dot dot)
                || roles[product.dot().id()] != Role.ANCHOR
                || !Anchors.writesStrided(dot)
                || (dot.start() != null && product.old() != null)
                || layouts[dot.a().id()] == null
                || layouts[dot.b().id()] == null) {
            return false;
        }
        Shape shape = product.dot().shape();
        Optional<Layout> to = layout(sum).reshape(shape);
        Layout row = null;
        if (product.bias() != null) {
            Optional<Layout> view = layout(product.bias()).reshape(shape);
            if (view.isEmpty()) {
                return false;
            }
            row = view.get();
        }
        if (to.isEmpty()
                || Contraction.plan(dot, layout(dot.a()), layout(dot.b()), to.get(), row, Kernel.Matmul.Old.REPLACED)
                        .isEmpty()) {
            return false;
        }
        products[sum.id()] = product;
        roles[sum.id()] = Role.ANCHOR;
        roles[product.dot().id()] = Role.ABSORBED;
        return true;
    }
}
