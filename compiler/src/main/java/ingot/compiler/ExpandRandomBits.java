package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.MathExpansion;
import ingot.ir.Op;

/// Writes random bits out as the integer arithmetic that defines them, so that they fuse into the kernel that uses
/// them.
///
///     %1 = random bits [B, T] of key %0   →   %1 = iota … %9 = xor … %30 = multiply …
final class ExpandRandomBits {
    private ExpandRandomBits() {}

    static Graph apply(Graph graph) {
        return Rewrite.values(
                graph, (to, value, op) -> op instanceof Op.RandomBits ? MathExpansion.expand(to, op) : to.add(op));
    }
}
