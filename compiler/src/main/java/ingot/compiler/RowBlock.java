package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// A function of rows, written again for fewer rows: every axis that carries them shrinks, every sum over them has
/// fewer segments.
///
///     f : [rows, C], [V, C] → [rows], Σ [V, C]      becomes      f : [rows/4, C], [V, C] → [rows/4], Σ/4 [V, C]
record RowBlock(Graph graph, BatchAxes axes, int rows) {

    /// `perRow`: which inputs carry the rows, on axis 0.
    static RowBlock of(Graph graph, List<Boolean> perRow, int rows) {
        Map<Value, Integer> seeds = new HashMap<>();
        List<Value> inputs = graph.inputs();
        for (int i = 0; i < inputs.size(); i++) {
            if (perRow.get(i)) {
                seeds.put(inputs.get(i), 0);
            }
        }
        return new RowBlock(graph, BatchAxes.of(graph, seeds, rows), rows);
    }

    boolean isSum(int result) {
        return axes.isSum(List.copyOf(graph.outputs().values()).get(result));
    }

    /// True if every result is a row by row one, with the rows on axis 0, or a sum over the rows, and nothing inside is
    /// more involved.
    boolean divides() {
        for (Value value : graph.values()) {
            boolean simple = switch (value.op()) {
                case Op.Composite _, Op.Result _, Op.Custom _, Op.RandomBits _ -> false;
                case Op.Slice _, Op.Pad _, Op.Convolution _ -> axes.axis(value) == BatchAxes.NONE;
                case Op _ -> true;
            };
            if (!simple || axes.axis(value) == BatchAxes.MIXED) {
                return false;
            }
        }
        return graph.outputs().values().stream().allMatch(value -> axes.isSum(value) || axes.axis(value) == 0);
    }

    /// Segments of the sums over the rows; 1 if there is none.
    int segments() {
        int segments = 1;
        for (Value value : graph.values()) {
            if (axes.isSum(value)) {
                segments = Math.max(
                        segments,
                        switch (value.op()) {
                            case Op.Reduce sum -> sum.segments();
                            case Op.Dot sum -> sum.segments();
                            case Op.ScatterAdd sum -> sum.segments();
                            case Op _ -> 1;
                        });
            }
        }
        return segments;
    }

    /// The results for `block` rows, which are `segments` segments; operands in the order of the inputs.
    List<Value> apply(GraphBuilder to, List<Value> operands, int block, int segments) {
        Map<Value, Value> mapped = new HashMap<>();
        List<Value> inputs = graph.inputs();
        for (int i = 0; i < inputs.size(); i++) {
            mapped.put(inputs.get(i), operands.get(i));
        }
        for (Value value : graph.values()) {
            if (!mapped.containsKey(value)) {
                mapped.put(value, to.add(shrunk(value, mapped, block, segments)));
            }
        }
        List<Value> results = new ArrayList<>();
        for (Value output : graph.outputs().values()) {
            results.add(at(mapped, output));
        }
        return results;
    }

    private Op shrunk(Value value, Map<Value, Value> mapped, int block, int segments) {
        boolean sum = axes.isSum(value);
        return switch (ingot.ir.Operands.replace(value.op(), operand -> at(mapped, operand))) {
            case Op.Iota iota -> new Op.Iota(new Type(iota.type().dtype(), shape(value, block)), iota.axis());
            case Op.Broadcast broadcast -> new Op.Broadcast(broadcast.x(), shape(value, block), broadcast.axes());
            case Op.Reshape reshape -> new Op.Reshape(reshape.x(), shape(value, block));
            case Op.Reduce reduce when sum -> new Op.Reduce(reduce.kind(), reduce.x(), reduce.axes(), segments);
            case Op.Dot dot
            when sum ->
                new Op.Dot(dot.a(), dot.b(), dot.batchA(), dot.batchB(), dot.contractA(), dot.contractB(), segments);
            case Op.ScatterAdd add
            when sum -> new Op.ScatterAdd(add.indices(), add.updates(), add.axis(), add.size(), segments);
            case Op op -> op;
        };
    }

    private Shape shape(Value value, int block) {
        int axis = axes.axis(value);
        return axis < 0
                ? value.shape()
                : value.shape().with(axis, (int) ((long) value.shape().dim(axis) * block / rows));
    }

    private static Value at(Map<Value, Value> mapped, Value value) {
        Value found = mapped.get(value);
        if (found == null) {
            throw new IllegalStateException(value + " is used before it is defined");
        }
        return found;
    }
}
