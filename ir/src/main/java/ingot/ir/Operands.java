package ingot.ir;

import java.util.List;
import java.util.function.UnaryOperator;

/// Rebuilds an op with other operands.
public final class Operands {
    private Operands() {}

    /// `op` with every operand replaced by `by` of it.
    public static Op replace(Op op, UnaryOperator<Value> by) {
        return switch (op) {
            case Op.Input x -> x;
            case Op.Weight x -> x;
            case Op.Constant x -> x;
            case Op.Iota x -> x;
            case Op.RandomBits x -> new Op.RandomBits(x.shape(), x.stream(), by.apply(x.key()));
            case Op.Unary x -> new Op.Unary(x.kind(), by.apply(x.x()));
            case Op.Binary x -> new Op.Binary(x.kind(), by.apply(x.a()), by.apply(x.b()));
            case Op.Fma x -> new Op.Fma(by.apply(x.a()), by.apply(x.b()), by.apply(x.c()));
            case Op.Compare x -> new Op.Compare(x.kind(), by.apply(x.a()), by.apply(x.b()));
            case Op.Select x -> new Op.Select(by.apply(x.condition()), by.apply(x.a()), by.apply(x.b()));
            case Op.Convert x -> new Op.Convert(by.apply(x.x()), x.to());
            case Op.Bitcast x -> new Op.Bitcast(by.apply(x.x()), x.to());
            case Op.Broadcast x -> new Op.Broadcast(by.apply(x.x()), x.shape(), x.axes());
            case Op.Reshape x -> new Op.Reshape(by.apply(x.x()), x.shape());
            case Op.Transpose x -> new Op.Transpose(by.apply(x.x()), x.permutation());
            case Op.Slice x -> new Op.Slice(by.apply(x.x()), x.starts(), x.limits(), x.strides());
            case Op.Pad x -> new Op.Pad(by.apply(x.x()), by.apply(x.padding()), x.low(), x.high(), x.interior());
            case Op.Concatenate x -> new Op.Concatenate(all(x.operands(), by), x.axis());
            case Op.Reverse x -> new Op.Reverse(by.apply(x.x()), x.axes());
            case Op.Gather x -> new Op.Gather(by.apply(x.x()), by.apply(x.indices()), x.axis());
            case Op.ScatterAdd x ->
                new Op.ScatterAdd(by.apply(x.indices()), by.apply(x.updates()), x.axis(), x.size(), x.segments());
            case Op.TakeAlong x -> new Op.TakeAlong(by.apply(x.x()), by.apply(x.indices()), x.axis());
            case Op.AddAlong x -> new Op.AddAlong(by.apply(x.indices()), by.apply(x.updates()), x.axis(), x.size());
            case Op.ArgSort x -> new Op.ArgSort(by.apply(x.x()), x.axis(), x.descending());
            case Op.Reduce x -> new Op.Reduce(x.kind(), by.apply(x.x()), x.axes(), x.segments());
            case Op.Cumulative x -> new Op.Cumulative(x.kind(), by.apply(x.x()), x.axis(), x.reverse());
            case Op.Dot x ->
                new Op.Dot(
                        by.apply(x.a()),
                        by.apply(x.b()),
                        x.batchA(),
                        x.batchB(),
                        x.contractA(),
                        x.contractB(),
                        x.segments(),
                        x.start() == null ? null : by.apply(x.start()));
            case Op.Convolution x ->
                new Op.Convolution(
                        by.apply(x.x()), by.apply(x.kernel()), x.window(), x.groups(), x.batchGroups(), x.segments());
            case Op.ReduceWindow x -> new Op.ReduceWindow(x.kind(), by.apply(x.x()), x.size(), x.window());
            case Op.ScatterWindowMax x ->
                new Op.ScatterWindowMax(by.apply(x.x()), by.apply(x.updates()), x.size(), x.window());
            case Op.Composite x -> new Op.Composite(x.function(), all(x.operands(), by));
            case Op.Result x -> new Op.Result(by.apply(x.composite()), x.index());
            case Op.Custom x -> new Op.Custom(x.function(), all(x.operands(), by));
        };
    }

    private static List<Value> all(List<Value> values, UnaryOperator<Value> by) {
        return values.stream().map(by).toList();
    }
}
