package ingot.ir;

import java.util.List;

/// A user-written operator: its type rule and its meaning; a gradient is optional.
public interface CustomFunction {
    String name();

    Type type(List<Type> operands);

    Tensor evaluate(List<Tensor> operands);

    /// Builds one cotangent per floating-point operand, in operand order, from (operands, result, cotangent of the
    /// result).
    default List<Value> gradient(GraphBuilder builder, List<Value> operands, Value result, Value cotangent) {
        throw new IngotException("custom op " + name() + ": no gradient; implement CustomFunction.gradient");
    }
}
