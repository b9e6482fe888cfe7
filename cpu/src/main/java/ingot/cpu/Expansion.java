package ingot.cpu;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.MathExpansion;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.UnaryKind;
import ingot.ir.Value;

/// Pointwise ops on scalars as the basic ops that both kinds of code have.
final class Expansion {
    private Expansion() {}

    static Value add(GraphBuilder graph, Op op) {
        return switch (op) {
            case Op.Unary unary
            when unary.kind() == UnaryKind.SIGN && unary.x().dtype() == DType.I32 -> sign(graph, unary.x());
            case Op.Unary _, Op.Binary _ -> MathExpansion.covers(op) ? MathExpansion.expand(graph, op) : graph.add(op);
            case Op.Fma _, Op.Compare _, Op.Select _, Op.Bitcast _ -> graph.add(op);
            case Op.Convert convert -> graph.convert(convert.x(), convert.to());
            default -> throw new UnsupportedPassException(op.getClass().getSimpleName());
        };
    }

    private static Value sign(GraphBuilder graph, Value x) {
        Value zero = graph.scalarLike(x, 0);
        Value negative = graph.select(graph.compare(CompareKind.LESS, x, zero), graph.scalarLike(x, -1), zero);
        return graph.select(graph.compare(CompareKind.GREATER, x, zero), graph.scalarLike(x, 1), negative);
    }
}
