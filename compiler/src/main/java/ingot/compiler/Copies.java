package ingot.compiler;

import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;

/// The small kernels that the schedule itself needs.
final class Copies {
    private Copies() {}

    /// Row-major bytes from the read to the write.
    static Kernel copy(Type type) {
        int elements = Math.toIntExact(type.shape().elements());
        GraphBuilder builder = new GraphBuilder("copy");
        Type flat = switch (type.dtype()) {
            case F32, I32, BOOL -> new Type(type.dtype(), ingot.ir.Shape.of(elements));
            case I64 -> Type.i32(Math.multiplyExact(2, elements));
            case BF16, F16, I8, U8 -> new Type(type.dtype(), ingot.ir.Shape.of(elements));
        };
        Value x = builder.input("0", flat);
        boolean plain = flat.dtype() == DType.F32 || flat.dtype() == DType.I32 || flat.dtype() == DType.BOOL;
        builder.output("0", plain ? x : builder.add(new Op.Reshape(x, flat.shape())));
        Layout layout = Layout.rowMajor(flat);
        return plain
                ? new Kernel.Map(builder.build(), List.of(layout), List.of(layout))
                : new Kernel.Loop(builder.build(), List.of(layout), List.of(layout));
    }

    /// write = read 0 + read 1, in place: the write is read 0.
    static Kernel add(Type type) {
        Type flat = type.with(ingot.ir.Shape.of(Math.toIntExact(type.shape().elements())));
        GraphBuilder builder = new GraphBuilder("add");
        builder.output("0", builder.add(builder.input("0", flat), builder.input("1", flat)));
        Layout layout = Layout.rowMajor(flat);
        boolean plain = flat.dtype() == DType.F32 || flat.dtype() == DType.I32;
        return plain
                ? new Kernel.Map(builder.build(), List.of(layout, layout), List.of(layout))
                : new Kernel.Loop(builder.build(), List.of(layout, layout), List.of(layout));
    }
}
