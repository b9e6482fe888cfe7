package ingot.autodiff;

import ingot.ir.DType;
import ingot.ir.Function;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Reverse-mode derivatives as nodes of the same graph: one exhaustive switch says what each op hands to its operands.
///
/// Values are visited in descending order of id, so every user of a value comes before it. The order of addition is
/// part of the result: the cotangents that reach one value are added as `((c₀ + c₁) + c₂) + …` in ascending order of
/// the users' ids, for one user in operand order; a cotangent given for the value itself comes last. Integers and
/// booleans carry no cotangent. Nodes are added in the scope of their forward value with `′` appended.
public final class Gradients {
    private Gradients() {}

    /// The derivatives of the scalar `loss` with respect to each of `wrt`; zeros where it does not depend on it.
    ///
    /// They are total derivatives: a member of `wrt` that depends on another one passes its share on.
    public static List<Value> of(GraphBuilder builder, Value loss, List<Value> wrt) {
        return of(builder, loss, wrt, value -> {});
    }

    /// Tells `visited` each forward value whose gradient values have just been added: whoever watches the builder grow
    /// knows what every gradient value is for.
    public static List<Value> of(GraphBuilder builder, Value loss, List<Value> wrt, Consumer<Value> visited) {
        if (loss.shape().rank() != 0 || !loss.dtype().isFloating()) {
            throw new IngotException("gradient: the loss must be a floating-point scalar, got " + loss.type() + " at "
                    + loss + "; reduce it first");
        }
        return vjp(builder, List.of(loss), List.of(builder.scalarLike(loss, 1)), wrt, visited);
    }

    /// Σ over outputs of cotangentᵀ · ∂output/∂w for each w of `wrt`; zeros where no output depends on it.
    public static List<Value> vjp(GraphBuilder builder, List<Value> outputs, List<Value> cotangents, List<Value> wrt) {
        return vjp(builder, outputs, cotangents, wrt, value -> {});
    }

    private static List<Value> vjp(
            GraphBuilder builder,
            List<Value> outputs,
            List<Value> cotangents,
            List<Value> wrt,
            Consumer<Value> visited) {
        if (outputs.size() != cotangents.size()) {
            throw new IllegalArgumentException(
                    "vjp: " + outputs.size() + " outputs but " + cotangents.size() + " cotangents");
        }
        for (int i = 0; i < outputs.size(); i++) {
            if (!outputs.get(i).type().equals(cotangents.get(i).type())) {
                throw new IngotException(
                        "vjp: output " + i + " is " + outputs.get(i).type() + ", its cotangent "
                                + cotangents.get(i).type());
            }
        }
        for (Value w : wrt) {
            if (!w.dtype().isFloating()) {
                throw new IngotException(
                        "gradient: " + w + " : " + w.type() + " has none, only floating-point values do");
            }
        }
        String scope = builder.scope();
        List<@Nullable Value> found = sweep(builder, outputs, cotangents, wrt, Set.of(), visited);
        builder.enterScope(scope);
        List<Value> result = new ArrayList<>();
        for (int i = 0; i < wrt.size(); i++) {
            Value gradient = found.get(i);
            result.add(gradient == null ? builder.fullLike(wrt.get(i), 0) : gradient);
        }
        return result;
    }

    /// The reverse sweep. Values of `leaves` keep what reaches them and pass nothing on.
    private static List<@Nullable Value> sweep(
            GraphBuilder builder,
            List<Value> outputs,
            List<? extends @Nullable Value> cotangents,
            List<Value> wrt,
            Set<Value> leaves,
            Consumer<Value> visited) {
        int last = outputs.stream().mapToInt(Value::id).max().orElse(-1);
        List<Value> forward = List.copyOf(builder.values().subList(0, last + 1));
        Cotangents flow = new Cotangents(builder, forward, wrt, leaves);
        for (int i = 0; i < outputs.size(); i++) {
            Value cotangent = cotangents.get(i);
            if (cotangent != null && flow.wants(outputs.get(i))) {
                flow.seed(outputs.get(i), cotangent);
            }
        }
        for (int id = last; id >= 0; id--) {
            Value value = forward.get(id);
            if (flow.reached(value)) {
                String scope = builder.scope(value);
                builder.enterScope(scope.isEmpty() || scope.endsWith("′") ? scope : scope + "′");
                Value cotangent = flow.total(value);
                if (!leaves.contains(value)) {
                    propagate(builder, value, cotangent, flow);
                    flow.endOfUser();
                }
                visited.accept(value);
            }
        }
        return wrt.stream().<@Nullable Value>map(flow::ofTotal).toList();
    }

    /// Hands the cotangent `dy` of `y` on to the operands of `y`. `dy` is null only for a composite with further
    /// results.
    private static void propagate(GraphBuilder builder, Value y, @Nullable Value dy, Cotangents flow) {
        switch (y.op()) {
            // Sources have no operands that vary.
            case Op.Input _, Op.Weight _, Op.Constant _, Op.Iota _, Op.RandomBits _ -> {}
            // Piecewise constant: derivative 0.
            case Op.Compare _, Op.Bitcast _, Op.ArgSort _ -> {}

            case Op.Unary op -> PointwiseGradients.unary(builder, op, y, given(dy), flow);
            case Op.Binary op -> PointwiseGradients.binary(builder, op, y, given(dy), flow);
            case Op.Fma op -> PointwiseGradients.fma(builder, op, given(dy), flow);
            case Op.Select op -> PointwiseGradients.select(builder, op, given(dy), flow);
            case Op.Convert op -> PointwiseGradients.convert(builder, op, given(dy), flow);

            case Op.Broadcast op -> MovementGradients.broadcast(builder, op, given(dy), flow);
            case Op.Reshape op ->
                flow.add(op.x(), () -> builder.reshape(given(dy), op.x().shape()));
            case Op.Transpose op -> MovementGradients.transpose(builder, op, given(dy), flow);
            case Op.Slice op -> MovementGradients.slice(builder, op, given(dy), flow);
            case Op.Pad op -> MovementGradients.pad(builder, op, given(dy), flow);
            case Op.Concatenate op -> MovementGradients.concatenate(builder, op, given(dy), flow);
            case Op.Reverse op -> flow.add(op.x(), () -> builder.add(new Op.Reverse(given(dy), op.axes())));

            // Taking and adding slices are each other's transpose; both are linear in the data, constant in the indices.
            case Op.Gather op ->
                flow.add(
                        op.x(),
                        () -> builder.add(new Op.ScatterAdd(
                                op.indices(),
                                given(dy),
                                op.axis(),
                                op.x().shape().dim(op.axis()),
                                1)));
            case Op.ScatterAdd op ->
                flow.add(op.updates(), () -> builder.add(new Op.Gather(given(dy), op.indices(), op.axis())));
            case Op.TakeAlong op ->
                flow.add(
                        op.x(),
                        () -> builder.add(new Op.AddAlong(
                                op.indices(),
                                given(dy),
                                op.axis(),
                                op.x().shape().dim(op.axis()))));
            case Op.AddAlong op ->
                flow.add(op.updates(), () -> builder.add(new Op.TakeAlong(given(dy), op.indices(), op.axis())));

            case Op.Reduce op -> ReductionGradients.reduce(builder, op, y, given(dy), flow);
            case Op.Cumulative op -> ReductionGradients.cumulative(builder, op, y, given(dy), flow);
            case Op.Dot op -> ContractionGradients.dot(builder, op, given(dy), flow);
            case Op.Convolution op -> ContractionGradients.convolution(builder, op, given(dy), flow);
            case Op.ReduceWindow op -> WindowGradients.reduceWindow(builder, op, given(dy), flow);
            case Op.ScatterWindowMax op -> WindowGradients.scatterWindowMax(builder, op, given(dy), flow);

            case Op.Composite op -> composite(builder, op, y, dy, flow);
            case Op.Result op -> flow.addResult(op.composite(), op.index(), given(dy));
            case Op.Custom op -> custom(builder, op, y, given(dy), flow);
        }
    }

    private static Value given(@Nullable Value dy) {
        if (dy == null) {
            throw new IllegalStateException("a cotangent is missing");
        }
        return dy;
    }

    /// By the function's own gradient; without one, by differentiating its definition in place.
    private static void composite(GraphBuilder builder, Op.Composite op, Value y, @Nullable Value dy, Cotangents flow) {
        Function function = op.function();
        List<Value> floating =
                op.operands().stream().filter(v -> v.dtype().isFloating()).toList();
        List<@Nullable Value> cotangents = new ArrayList<>();
        cotangents.add(dy);
        for (int i = 1; i < function.resultTypes().size(); i++) {
            cotangents.add(flow.result(y, i));
        }
        if (function.gradient() == null) {
            List<Value> results = builder.inline(function.definition(), op.operands());
            List<Value> wanted =
                    op.operands().stream().filter(flow::wants).distinct().toList();
            String scope = builder.scope();
            List<@Nullable Value> found =
                    sweep(builder, results, cotangents, wanted, new HashSet<>(wanted), value -> {});
            builder.enterScope(scope);
            for (int i = 0; i < wanted.size(); i++) {
                Value contribution = found.get(i);
                if (contribution != null) {
                    flow.add(wanted.get(i), contribution);
                }
            }
            return;
        }
        List<Value> operands = new ArrayList<>(op.operands());
        operands.add(y);
        for (int i = 1; i < cotangents.size(); i++) {
            operands.add(builder.add(new Op.Result(y, i)));
        }
        for (int i = 0; i < cotangents.size(); i++) {
            Value cotangent = cotangents.get(i);
            Value result = operands.get(op.operands().size() + i);
            operands.add(cotangent == null ? builder.fullLike(result, 0) : cotangent);
        }
        List<Value> found = builder.call(function.gradient(), operands);
        handOut(function.name(), floating, found, flow);
    }

    private static void custom(GraphBuilder builder, Op.Custom op, Value y, Value dy, Cotangents flow) {
        List<Value> floating =
                op.operands().stream().filter(v -> v.dtype().isFloating()).toList();
        handOut(op.function().name(), floating, op.function().gradient(builder, op.operands(), y, dy), flow);
    }

    private static void handOut(String name, List<Value> floating, List<Value> found, Cotangents flow) {
        if (found.size() != floating.size()) {
            throw new IngotException(name + ": its gradient gives " + found.size() + " cotangents for "
                    + floating.size() + " floating-point operands");
        }
        for (int i = 0; i < found.size(); i++) {
            if (flow.wants(floating.get(i))) {
                flow.add(floating.get(i), found.get(i));
            }
        }
    }

    /// True for the scalar 1 and its repetitions: such a cotangent needs no multiplication.
    static boolean isOne(Value value) {
        return switch (value.op()) {
            case Op.Constant constant ->
                constant.data().type().dtype() == DType.F32
                        && constant.data().shape().rank() == 0
                        && constant.data().getFloat(0) == 1f;
            case Op.Broadcast broadcast -> isOne(broadcast.x());
            case Op.Reshape reshape -> isOne(reshape.x());
            case Op _ -> false;
        };
    }
}
