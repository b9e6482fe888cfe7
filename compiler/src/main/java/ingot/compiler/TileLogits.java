package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Computes a linear cross entropy and its gradient block of rows by block of rows, so that the logits [rows, V] never
/// exist as a whole.
///
///     hidden [rows, C] ┬ block 0 ─ logits ─ losses, dHidden, dWeight₀ ┐
///                      ├ block 1 ─ logits ─ losses, dHidden, dWeight₁ ┴ + ┐
///                      ├ block 2 ─ logits ─ losses, dHidden, dWeight₂ ┐   + ─ dWeight
///                      └ block 3 ─ logits ─ losses, dHidden, dWeight₃ ┴ + ┘
///
/// A block is a power of two of shards and the partial dWeights meet in the fixed tree, so the bits are those of one
/// segmented sum. Loss and gradient of a block come together and share its logits, when the incoming gradient does not
/// depend on the loss.
final class TileLogits {
    private static final String LOSS = "linearCrossEntropy";
    private static final String GRADIENT = "linearCrossEntropyGradient";
    private static final int HIDDEN = 0;
    private static final int WEIGHT = 1;

    private final Graph graph;
    private final long limit;
    private final GraphBuilder to;
    private final Map<Value, Value> mapped = new HashMap<>();
    private final Map<Value, List<Value>> results = new HashMap<>(); // of tiled composites

    private TileLogits(Graph graph, long limit) {
        this.graph = graph;
        this.limit = limit;
        this.to = new GraphBuilder(graph.name());
    }

    /// `limit`: bytes of logits that may exist at a time; a block has at least one shard. A backend that has kernels for these
    /// functions (`kept`) tiles them itself.
    static Graph apply(Graph graph, Set<String> kept, long limit) {
        boolean fires = graph.values().stream()
                .anyMatch(value -> isLarge(value, limit)
                        && !kept.contains(((Op.Composite) value.op()).function().name()));
        return fires ? new TileLogits(graph, limit).run() : graph;
    }

    private static boolean isLarge(Value value, long limit) {
        return value.op() instanceof Op.Composite(var function, List<Value> operands)
                && (function.name().equals(LOSS) || function.name().equals(GRADIENT))
                && 4L * rows(operands) * operands.get(WEIGHT).shape().dim(0) > limit;
    }

    private static int rows(List<Value> operands) {
        return operands.get(HIDDEN).shape().dim(0);
    }

    private Graph run() {
        for (Value value : graph.values()) {
            emit(value);
        }
        graph.outputs().forEach((key, value) -> to.output(key, emit(value)));
        return to.build();
    }

    private Value emit(Value value) {
        Value known = mapped.get(value);
        if (known != null) {
            return known;
        }
        Value made = null;
        if (value.op() instanceof Op.Result result) {
            emit(result.composite());
            List<Value> tiled = results.get(result.composite());
            made = tiled == null ? null : tiled.get(result.index());
        } else if (isLarge(value, limit)) {
            made = tiled(value, (Op.Composite) value.op());
        }
        if (made == null) {
            value.op().operands().forEach(this::emit);
            to.enterScope(graph.scope(value));
            made = to.add(Operands.replace(value.op(), this::emit));
        }
        mapped.put(value, made);
        return made;
    }

    /// The first result in blocks, or null if it cannot be divided. A loss takes its gradient along.
    private @Nullable Value tiled(Value value, Op.Composite composite) {
        Value partner = partner(value, composite);
        List<Value> together = partner == null ? List.of(value) : List.of(value, partner);
        List<RowBlock> parts = new ArrayList<>();
        int rows = rows(composite.operands());
        int segments = 0;
        for (Value one : together) {
            Op.Composite function = (Op.Composite) one.op();
            List<Boolean> perRow = new ArrayList<>();
            for (int i = 0; i < function.operands().size(); i++) {
                perRow.add(i != WEIGHT);
            }
            RowBlock part = RowBlock.of(function.function().definition(), perRow, rows);
            if (!part.divides()) {
                return null;
            }
            parts.add(part);
            segments = Math.max(segments, part.segments());
        }
        if (partner == null && composite.function().name().equals(LOSS)) {
            segments = rows; // no sum over rows: any row is a block
        }
        int block =
                block(rows, segments, composite.operands().get(WEIGHT).shape().dim(0));
        if (block == segments) {
            return null;
        }
        divide(together, parts, rows, segments, block);
        return first(value);
    }

    private Value first(Value value) {
        List<Value> found = results.get(value);
        if (found == null) {
            throw new IllegalStateException(value + " was not divided");
        }
        return found.getFirst();
    }

    /// The largest power of two of segments whose logits keep the limit.
    private int block(int rows, int segments, int classes) {
        int block = 1;
        while (2 * block < segments && 2L * block * (rows / segments) * classes * 4 <= limit) {
            block *= 2;
        }
        return Math.min(block, segments);
    }

    private void divide(List<Value> together, List<RowBlock> parts, int rows, int segments, int block) {
        List<List<List<Value>>> rowResults = new ArrayList<>(); // by composite and result
        List<List<List<Value>>> sums = new ArrayList<>();
        for (RowBlock part : parts) {
            int count = part.graph().outputs().size();
            rowResults.add(lists(count));
            sums.add(lists(count));
        }
        int perSegment = rows / segments;
        int index = 0;
        for (int at = 0; at < segments; at += block) {
            int size = Math.min(block, segments - at);
            index++;
            for (int p = 0; p < parts.size(); p++) {
                RowBlock part = parts.get(p);
                List<Value> operands = new ArrayList<>();
                List<Value> whole = together.get(p).op().operands();
                for (int i = 0; i < whole.size(); i++) {
                    Value operand = operand(whole.get(i), rowResults, together, p);
                    operands.add(
                            i == WEIGHT || isBlock(whole.get(i), together, p)
                                    ? operand
                                    : to.slice(operand, 0, at * perSegment, (at + size) * perSegment));
                }
                List<Value> found = part.apply(to, operands, size * perSegment, size);
                for (int r = 0; r < found.size(); r++) {
                    if (part.isSum(r)) {
                        push(sums.get(p).get(r), found.get(r), index);
                    } else {
                        rowResults.get(p).get(r).add(found.get(r));
                    }
                }
            }
        }
        for (int p = 0; p < parts.size(); p++) {
            List<Value> joined = new ArrayList<>();
            for (int r = 0; r < rowResults.get(p).size(); r++) {
                List<Value> tree = sums.get(p).get(r);
                while (tree.size() > 1) {
                    merge(tree);
                }
                joined.add(tree.isEmpty() ? to.concatenate(rowResults.get(p).get(r), 0) : tree.getFirst());
            }
            results.put(together.get(p), joined);
            mapped.put(together.get(p), joined.getFirst());
        }
    }

    private static List<List<Value>> lists(int count) {
        List<List<Value>> lists = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            lists.add(new ArrayList<>());
        }
        return lists;
    }

    /// The loss that a gradient takes as operand is the block that has just been computed.
    private static boolean isBlock(Value operand, List<Value> together, int p) {
        return p > 0 && operand.equals(together.getFirst());
    }

    private Value operand(Value operand, List<List<List<Value>>> rowResults, List<Value> together, int p) {
        return isBlock(operand, together, p) ? rowResults.getFirst().getFirst().getLast() : emit(operand);
    }

    private void push(List<Value> tree, Value partial, int count) {
        tree.add(partial);
        for (int n = count; n % 2 == 0; n /= 2) {
            merge(tree);
        }
    }

    private void merge(List<Value> tree) {
        Value right = tree.removeLast();
        Value left = tree.removeLast();
        tree.add(to.add(left, right));
    }

    /// The gradient of a loss in the same graph, if everything it needs can be had before the loss.
    private @Nullable Value partner(Value value, Op.Composite loss) {
        if (!loss.function().name().equals(LOSS)) {
            return null;
        }
        for (Value other : graph.values()) {
            if (other.op() instanceof Op.Composite gradient
                    && gradient.function().name().equals(GRADIENT)
                    && gradient.operands().subList(0, 3).equals(loss.operands())
                    && gradient.operands().stream()
                            .allMatch(operand -> operand.equals(value) || !needs(operand, value))) {
                return other;
            }
        }
        return null;
    }

    private boolean needs(Value value, Value what) {
        boolean[] cone = new boolean[graph.values().size()];
        cone[value.id()] = true;
        for (int id = value.id(); id > what.id(); id--) {
            if (cone[id]) {
                graph.values().get(id).op().operands().forEach(operand -> cone[operand.id()] = true);
            }
        }
        return cone[what.id()];
    }
}
