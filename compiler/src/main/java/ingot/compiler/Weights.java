package ingot.compiler;

import ingot.ir.Op;
import ingot.ir.Value;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Predicate;

/// Instructions per element, roughly: what a pointwise op adds to a kernel's code and time.
final class Weights {
    private Weights() {}

    static int of(Op op) {
        return switch (op) {
            case Op.Unary x ->
                switch (x.kind()) {
                    case NEGATE, ABS, SIGN, FLOOR, CEIL, ROUND, NOT, SQRT -> 1;
                    case EXP, LOG, SIN, COS, TANH, ERF -> 16;
                };
            case Op.Binary x -> x.kind() == Op.BinaryKind.POWER ? 40 : 1;
            case Op.Reduce _ -> 4;
            default -> 1;
        };
    }

    /// Weight of `value` with everything below it that `through` lets pass.
    static int of(Value value, Predicate<Value> through) {
        return of(value, through, new HashSet<>());
    }

    private static int of(Value value, Predicate<Value> through, Set<Value> seen) {
        if (!seen.add(value)) {
            return 0;
        }
        int weight = Places.isPointwise(value.op()) ? of(value.op()) : 0;
        for (Value operand : value.op().operands()) {
            if (through.test(operand)) {
                weight += of(operand, through, seen);
            }
        }
        return weight;
    }
}
