package ingot.ir;

/// The result of one op in one graph, identified by its position there.
///
/// Equality is by `id`: within a graph equal ops are one value, and comparing whole operand trees would cost
/// exponential time. Values of different graphs must not be mixed; `GraphBuilder` rejects foreign operands.
public record Value(int id, Op op, Type type) {
    public Shape shape() {
        return type.shape();
    }

    public DType dtype() {
        return type.dtype();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Value value && value.id == id;
    }

    @Override
    public int hashCode() {
        return id;
    }

    @Override
    public String toString() {
        return "%" + id;
    }
}
