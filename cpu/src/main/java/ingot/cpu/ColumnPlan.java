package ingot.cpu;

import ingot.compiler.Kernel;
import ingot.ir.DType;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// A column kernel as passes over columns: one that adds a row into the accumulators of its lane, the tree over 16
/// lanes, the addition of two segments, and one that makes the results.
///
/// Reduction r is `Stash` r: in the first pass the accumulator row, in the last the reduced row.
final class ColumnPlan {
    /// A reduction; BOOL is reduced as I32.
    record Reduction(ReduceKind kind, DType dtype) {
        Value combine(PassBuilder builder, Value a, Value b) {
            return builder.graph()
                    .binary(
                            switch (kind) {
                                case SUM -> BinaryKind.ADD;
                                case PRODUCT -> BinaryKind.MULTIPLY;
                                case MIN -> BinaryKind.MIN;
                                case MAX -> BinaryKind.MAX;
                                case AND -> BinaryKind.AND;
                                case OR -> BinaryKind.OR;
                            },
                            a,
                            b);
        }
    }

    private final Kernel.Column kernel;
    private final Map<Value, Source.Stash> stashes = new LinkedHashMap<>();
    private final List<Reduction> reductions = new ArrayList<>();
    private final PassBuilder accumulate = new PassBuilder(_ -> null);
    private final PassBuilder results = new PassBuilder(this::reduced);
    private int segments = 1;

    private ColumnPlan(Kernel.Column kernel) {
        this.kernel = kernel;
    }

    static ColumnPlan of(Kernel.Column kernel) {
        ColumnPlan plan = new ColumnPlan(kernel);
        for (int w = 0; w < kernel.writes().size(); w++) {
            plan.results.write(plan.results.scalar(kernel.body().output(Integer.toString(w))));
        }
        plan.stashes.forEach((value, stash) -> {
            Value x = plan.accumulate.scalar(((Op.Reduce) value.op()).x());
            Reduction reduction = plan.reductions.get(stash.index());
            Value element = plan.accumulate.graph().convert(x, reduction.dtype());
            Value sum = plan.accumulate.read(stash);
            plan.accumulate.write(reduction.combine(plan.accumulate, sum, element));
        });
        return plan;
    }

    private @Nullable Source reduced(Value value) {
        if (!(value.op() instanceof Op.Reduce reduce)) {
            return null;
        }
        return stashes.computeIfAbsent(value, _ -> {
            if (reduce.x().shape().rank() != kernel.space().rank()) {
                throw new UnsupportedPassException(
                        "a column reduction of " + reduce.x().type());
            }
            segments = reduce.segments();
            DType dtype = value.dtype() == DType.BOOL ? DType.I32 : value.dtype();
            reductions.add(new Reduction(reduce.kind(), dtype));
            return new Source.Stash(stashes.size(), dtype);
        });
    }

    int segments() {
        return segments;
    }

    List<Reduction> reductions() {
        return reductions;
    }

    /// Writes are the accumulators, in the order of the reductions.
    PassBuilder accumulate() {
        return accumulate;
    }

    /// Writes are the kernel's.
    PassBuilder results() {
        return results;
    }

    /// Lane l with lane l + h, for h = 8, 4, 2, 1.
    static Pass tree(Reduction reduction) {
        var builder = new PassBuilder(_ -> null);
        Value[] lanes = new Value[16];
        for (int l = 0; l < 16; l++) {
            lanes[l] = builder.read(new Source.Stash(l, reduction.dtype()));
        }
        for (int h = 8; h > 0; h >>= 1) {
            for (int l = 0; l < h; l++) {
                lanes[l] = reduction.combine(builder, lanes[l], lanes[l + h]);
            }
        }
        builder.write(lanes[0]);
        return builder.build(_ -> Pass.Kind.EACH);
    }

    static Pass pair(Reduction reduction) {
        var builder = new PassBuilder(_ -> null);
        Value a = builder.read(new Source.Stash(0, reduction.dtype()));
        Value b = builder.read(new Source.Stash(1, reduction.dtype()));
        builder.write(reduction.combine(builder, a, b));
        return builder.build(_ -> Pass.Kind.EACH);
    }
}
