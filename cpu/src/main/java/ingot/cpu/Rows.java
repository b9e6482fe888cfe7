package ingot.cpu;

import ingot.ir.DType;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Value;

/// Passes over one row of a table: copy, clear, add.
final class Rows {
    private Rows() {}

    /// write = read; `step`: bytes from element to element of the read.
    static Pass copy(DType dtype, long step) {
        var builder = new PassBuilder(_ -> null);
        builder.write(builder.read(new Source.Argument(0, dtype)));
        return builder.build(_ -> step == 0 ? Pass.Kind.SAME : Pass.Kind.EACH);
    }

    /// write = 0
    static Pass clear(DType dtype) {
        var builder = new PassBuilder(_ -> null);
        builder.write(
                dtype == DType.F32
                        ? builder.graph().constant(0f)
                        : builder.graph().constant(0));
        return builder.build(_ -> Pass.Kind.EACH);
    }

    /// write = first + second; `step`: bytes from element to element of the second.
    static Pass add(DType dtype, long step) {
        var builder = new PassBuilder(_ -> null);
        Value a = builder.read(new Source.Argument(0, dtype));
        Value b = builder.read(new Source.Argument(1, dtype));
        builder.write(new ColumnPlan.Reduction(ReduceKind.SUM, dtype).combine(builder, a, b));
        return builder.build(source -> source instanceof Source.Argument(int index, _) && index == 1 && step == 0
                ? Pass.Kind.SAME
                : Pass.Kind.EACH);
    }

    /// A pass over all of a row that has any number of axes; `bases` come back as they were.
    static void run(BoundPass pass, Loops loops, long[] bases, int[] index, Workspace work) {
        for (long rest = loops.rows(); rest > 0; rest--) {
            pass.run(bases, loops.inner(), work);
            loops.next(index, bases);
        }
    }
}
