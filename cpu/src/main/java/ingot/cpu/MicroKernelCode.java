package ingot.cpu;

import static java.lang.constant.ConstantDescs.CD_Object;
import static java.lang.constant.ConstantDescs.CD_float;
import static java.lang.constant.ConstantDescs.CD_int;
import static java.lang.constant.ConstantDescs.CD_long;
import static java.lang.constant.ConstantDescs.CD_void;

import java.lang.classfile.ClassFile;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.TypeKind;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.lang.invoke.MethodHandles;

/// Writes the bytecode of one [MicroKernel] for a tile of any size: `rows` × `vectors` accumulators in locals, one
/// broadcast and `vectors` fused multiply-adds per row and step. A hidden class each, so that HotSpot compiles each as
/// a unit and a badly compiled one can be thrown away and defined afresh.
final class MicroKernelCode {
    private static final ClassDesc MEMORY = ClassDesc.of("ingot.cpu.Memory");
    private static final ClassDesc KERNEL = ClassDesc.of("ingot.cpu.MicroKernel");
    private static final ClassDesc SEGMENT = ClassDesc.of("java.lang.foreign.MemorySegment");
    private static final ClassDesc LAYOUTS = ClassDesc.of("java.lang.foreign.ValueLayout");
    private static final ClassDesc OF_FLOAT = ClassDesc.of("java.lang.foreign.ValueLayout$OfFloat");
    private static final ClassDesc ORDER = ClassDesc.of("java.nio.ByteOrder");
    private static final ClassDesc VECTOR = ClassDesc.of("jdk.incubator.vector.Vector");
    private static final ClassDesc FLOATS = ClassDesc.of("jdk.incubator.vector.FloatVector");
    private static final ClassDesc SPECIES = ClassDesc.of("jdk.incubator.vector.VectorSpecies");

    private static final MethodTypeDesc LOAD = MethodTypeDesc.of(FLOATS, SPECIES, SEGMENT, CD_long, ORDER);
    private static final MethodTypeDesc STORE = MethodTypeDesc.of(CD_void, SEGMENT, CD_long, ORDER);
    private static final MethodTypeDesc BROADCAST = MethodTypeDesc.of(FLOATS, SPECIES, CD_float);
    private static final MethodTypeDesc GET = MethodTypeDesc.of(CD_float, OF_FLOAT, CD_long);
    private static final MethodTypeDesc FMA = MethodTypeDesc.of(FLOATS, VECTOR, VECTOR);
    private static final MethodTypeDesc ADD = MethodTypeDesc.of(FLOATS, VECTOR);

    private final int rows;
    private final int vectors;
    private final int lanes;
    private final MicroKernel.Layout layout;
    private final MicroKernel.Start start;

    private MicroKernelCode(int rows, int vectors, int lanes, MicroKernel.Layout layout, MicroKernel.Start start) {
        this.rows = rows;
        this.vectors = vectors;
        this.lanes = lanes;
        this.layout = layout;
        this.start = start;
    }

    /// A fresh kernel class with its own profile and its own machine code.
    static MicroKernel define(int rows, int vectors, int lanes, MicroKernel.Layout layout, MicroKernel.Start start) {
        var code = new MicroKernelCode(rows, vectors, lanes, layout, start);
        try {
            var lookup = MethodHandles.lookup().defineHiddenClass(code.bytes(), true);
            return (MicroKernel)
                    lookup.findConstructor(lookup.lookupClass(), java.lang.invoke.MethodType.methodType(void.class))
                            .invoke();
        } catch (Throwable e) {
            throw new IllegalStateException("cannot define a matmul micro-kernel", e);
        }
    }

    private byte[] bytes() {
        var name = "ingot.cpu.Tile" + rows + "x" + vectors * lanes + "_" + layout + "_" + start;
        var run = MethodTypeDesc.of(CD_void, CD_long, CD_long, CD_long, CD_long, CD_long, CD_long, CD_int);
        return ClassFile.of()
                .build(
                        ClassDesc.of(name),
                        type -> type.withFlags(ClassFile.ACC_FINAL)
                                .withInterfaceSymbols(KERNEL)
                                .withMethodBody(
                                        "<init>",
                                        MethodTypeDesc.of(CD_void),
                                        0,
                                        c -> c.aload(0)
                                                .invokespecial(CD_Object, "<init>", MethodTypeDesc.of(CD_void))
                                                .return_())
                                .withMethodBody("run", run, ClassFile.ACC_PUBLIC, this::body));
    }

    // Locals: 0 this, 1 a, 3 aStride, 5 b, 7 bStep, 9 c, 11 cStride, 13 k, then ours.
    private static final int A = 1;
    private static final int A_STRIDE = 3;
    private static final int B = 5;
    private static final int B_STEP = 7;
    private static final int C = 9;
    private static final int C_STRIDE = 11;
    private static final int K = 13;

    private void body(CodeBuilder c) {
        int p = c.allocateLocal(TypeKind.INT);
        int[] rowOf = new int[layout == MicroKernel.Layout.ROWS ? rows : 0];
        int[][] acc = new int[rows][vectors];
        int[] bs = new int[vectors];
        int broadcast = c.allocateLocal(TypeKind.REFERENCE);
        int cRow = c.allocateLocal(TypeKind.LONG);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < vectors; j++) {
                acc[i][j] = c.allocateLocal(TypeKind.REFERENCE);
            }
        }
        for (int j = 0; j < vectors; j++) {
            bs[j] = c.allocateLocal(TypeKind.REFERENCE);
        }
        for (int i = 0; i < rowOf.length; i++) {
            rowOf[i] = c.allocateLocal(TypeKind.LONG);
        }
        mask(c.lload(A)).lstore(A);
        mask(c.lload(B)).lstore(B);

        if (layout == MicroKernel.Layout.ROWS) {
            c.lload(A).lstore(rowOf[0]);
            for (int i = 1; i < rows; i++) {
                mask(c.lload(rowOf[i - 1]).lload(A_STRIDE).ladd()).lstore(rowOf[i]);
            }
        }
        if (start == MicroKernel.Start.CONTINUE) {
            mask(c.lload(C)).lstore(cRow);
            for (int i = 0; i < rows; i++) {
                for (int j = 0; j < vectors; j++) {
                    load(c, cRow, j * lanes * 4).astore(acc[i][j]);
                }
                mask(c.lload(cRow).lload(C_STRIDE).ladd()).lstore(cRow);
            }
        } else {
            for (int i = 0; i < rows; i++) {
                for (int j = 0; j < vectors; j++) {
                    species(c)
                            .fconst_0()
                            .invokestatic(FLOATS, "broadcast", BROADCAST)
                            .astore(acc[i][j]);
                }
            }
        }

        var loop = c.newLabel();
        var done = c.newLabel();
        c.iconst_0().istore(p);
        c.labelBinding(loop);
        c.iload(p).iload(K).if_icmpge(done);
        for (int j = 0; j < vectors; j++) {
            load(c, B, j * lanes * 4).astore(bs[j]);
        }
        for (int i = 0; i < rows; i++) {
            species(c);
            c.getstatic(MEMORY, "ALL", SEGMENT).getstatic(LAYOUTS, "JAVA_FLOAT_UNALIGNED", OF_FLOAT);
            if (layout == MicroKernel.Layout.ROWS) {
                c.lload(rowOf[i]).iload(p).i2l().iconst_2().lshl().ladd();
            } else {
                c.lload(A).loadConstant(4L * i).ladd();
            }
            c.invokeinterface(SEGMENT, "get", GET)
                    .invokestatic(FLOATS, "broadcast", BROADCAST)
                    .astore(broadcast);
            for (int j = 0; j < vectors; j++) {
                c.aload(broadcast)
                        .aload(bs[j])
                        .aload(acc[i][j])
                        .invokevirtual(FLOATS, "fma", FMA)
                        .astore(acc[i][j]);
            }
        }
        mask(c.lload(B).lload(B_STEP).ladd()).lstore(B);
        if (layout == MicroKernel.Layout.COLUMNS) {
            mask(c.lload(A).lload(A_STRIDE).ladd()).lstore(A);
        }
        c.iinc(p, 1).goto_(loop);
        c.labelBinding(done);

        mask(c.lload(C)).lstore(cRow);
        for (int i = 0; i < rows; i++) {
            for (int j = 0; j < vectors; j++) {
                if (start == MicroKernel.Start.ADD) {
                    load(c, cRow, j * lanes * 4).aload(acc[i][j]).invokevirtual(FLOATS, "add", ADD);
                } else {
                    c.aload(acc[i][j]);
                }
                c.getstatic(MEMORY, "ALL", SEGMENT);
                address(c, cRow, j * lanes * 4);
                order(c).invokevirtual(FLOATS, "intoMemorySegment", STORE);
            }
            mask(c.lload(cRow).lload(C_STRIDE).ladd()).lstore(cRow);
        }
        c.return_();
    }

    private CodeBuilder load(CodeBuilder c, int base, int offset) {
        species(c).getstatic(MEMORY, "ALL", SEGMENT);
        address(c, base, offset);
        return order(c).invokestatic(FLOATS, "fromMemorySegment", LOAD);
    }

    private static void address(CodeBuilder c, int base, int offset) {
        c.lload(base).loadConstant((long) offset).ladd();
    }

    private CodeBuilder species(CodeBuilder c) {
        return c.getstatic(FLOATS, "SPECIES_" + 32 * lanes, SPECIES);
    }

    private static CodeBuilder order(CodeBuilder c) {
        return c.getstatic(ORDER, "LITTLE_ENDIAN", ORDER);
    }

    private static CodeBuilder mask(CodeBuilder c) {
        return c.loadConstant(Memory.MASK).land();
    }
}
