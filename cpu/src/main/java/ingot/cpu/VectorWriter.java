package ingot.cpu;

import static java.lang.constant.ConstantDescs.CD_Object;
import static java.lang.constant.ConstantDescs.CD_byte;
import static java.lang.constant.ConstantDescs.CD_float;
import static java.lang.constant.ConstantDescs.CD_int;
import static java.lang.constant.ConstantDescs.CD_long;
import static java.lang.constant.ConstantDescs.CD_void;

import ingot.cpu.Pass.Port;
import ingot.ir.DType;
import ingot.ir.Op;
import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Value;
import java.lang.classfile.ClassFile;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.Label;
import java.lang.classfile.TypeKind;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Writes the bytecode of a pass with the Vector API: one small method, so that HotSpot compiles it as a unit with
/// nothing boxed.
///
/// A value is a FloatVector, an IntVector or, for BOOL, a VectorMask of the lane type it came from. With reductions the
/// loop advances by 16 elements whatever the vector width: element i belongs to lane i mod 16 on every machine.
final class VectorWriter {
    private static final String PACKAGE = "jdk.incubator.vector.";
    private static final ClassDesc VECTOR = ClassDesc.of(PACKAGE + "Vector");
    private static final ClassDesc FLOATS = ClassDesc.of(PACKAGE + "FloatVector");
    private static final ClassDesc INTS = ClassDesc.of(PACKAGE + "IntVector");
    private static final ClassDesc MASK = ClassDesc.of(PACKAGE + "VectorMask");
    private static final ClassDesc SPECIES = ClassDesc.of(PACKAGE + "VectorSpecies");
    private static final ClassDesc OPERATORS = ClassDesc.of(PACKAGE + "VectorOperators");
    private static final ClassDesc COMPARISON = OPERATORS.nested("Comparison");
    private static final ClassDesc BINARY = OPERATORS.nested("Binary");
    private static final ClassDesc CONVERSION = OPERATORS.nested("Conversion");
    private static final ClassDesc MEMORY = ClassDesc.of("ingot.cpu.Memory");
    private static final ClassDesc SEGMENT = ClassDesc.of("java.lang.foreign.MemorySegment");
    private static final ClassDesc LAYOUTS = ClassDesc.of("java.lang.foreign.ValueLayout");
    private static final ClassDesc ORDER = ClassDesc.of("java.nio.ByteOrder");
    private static final MethodTypeDesc RUN = MethodTypeDesc.of(CD_void, CD_long.arrayType(), CD_int);
    private static final MethodTypeDesc MASKS = MethodTypeDesc.of(MASK, MASK);
    /// About ten bytes each, in a method of at most 8000.
    private static final int MOST_OPS = 600;

    private static final int BASES = 1;
    private static final int N = 2;

    private final Pass pass;
    private final int lanes;
    private final CodeBuilder code;
    private final int[] bases;
    private final int i;
    private final int offset;
    private final int[] locals;
    private final int[] scalars;
    private final Map<Integer, ClassDesc> masks = new HashMap<>();

    private VectorWriter(Pass pass, int lanes, CodeBuilder code) {
        this.pass = pass;
        this.lanes = lanes;
        this.code = code;
        bases = new int[pass.operands()];
        locals = new int[pass.body().values().size()];
        scalars = new int[locals.length];
        i = code.allocateLocal(TypeKind.INT);
        offset = code.allocateLocal(TypeKind.LONG);
    }

    static VectorCode define(Pass pass, int lanes) {
        byte[] bytes = ClassFile.of()
                .build(
                        ClassDesc.of("ingot.cpu.VectorPass"),
                        type -> type.withFlags(ClassFile.ACC_FINAL)
                                .withInterfaceSymbols(ClassDesc.of("ingot.cpu.VectorCode"))
                                .withMethodBody(
                                        "<init>",
                                        MethodTypeDesc.of(CD_void),
                                        0,
                                        c -> c.aload(0)
                                                .invokespecial(CD_Object, "<init>", MethodTypeDesc.of(CD_void))
                                                .return_())
                                .withMethodBody(
                                        "run",
                                        RUN,
                                        ClassFile.ACC_PUBLIC,
                                        c -> new VectorWriter(pass, lanes, c).body(pass.live())));
        return HiddenClasses.instance(bytes, VectorCode.class);
    }

    /// False for the ops no vector unit has, and for methods so long that HotSpot would not compile them: such a pass
    /// runs as scalar code.
    static boolean supports(Pass pass, int lanes) {
        List<Value> live = pass.live();
        int copies = pass.reductions().isEmpty() ? 1 : 16 / lanes;
        return live.size() * copies < MOST_OPS
                && live.stream()
                        .allMatch(value -> !(value.op() instanceof Op.Binary op)
                                || op.kind() != BinaryKind.REMAINDER
                                        && (op.kind() != BinaryKind.DIVIDE || value.dtype() == DType.F32));
    }

    private void body(List<Value> live) {
        for (int k = 0; k < bases.length; k++) {
            bases[k] = code.allocateLocal(TypeKind.LONG);
            code.aload(BASES)
                    .loadConstant(k)
                    .laload()
                    .loadConstant(Memory.MASK)
                    .land()
                    .lstore(bases[k]);
        }
        for (Value value : live) {
            if (value.op() instanceof Op.Input input) {
                scalar(value, Pass.port(input));
            }
        }
        int[] accumulators = new int[pass.reductions().size() * 16 / lanes];
        for (int a = 0; a < accumulators.length; a++) {
            accumulators[a] = code.allocateLocal(TypeKind.REFERENCE);
            lane(a);
            load(pass.reduced(a * lanes / 16).dtype());
            code.astore(accumulators[a]);
        }
        Label loop = code.newLabel();
        Label done = code.newLabel();
        code.iconst_0().istore(i).labelBinding(loop).iload(i).iload(N).if_icmpge(done);
        int copies = pass.reductions().isEmpty() ? 1 : 16 / lanes;
        code.iload(i).i2l().iconst_2().lshl().lstore(offset);
        for (int copy = 0; copy < copies; copy++) {
            for (Value value : live) {
                if (!(value.op() instanceof Op.Constant)) {
                    emit(value, copy);
                    keep(value);
                }
            }
            write(copy);
            for (int r = 0; r < pass.reductions().size(); r++) {
                int accumulator = accumulators[r * copies + copy];
                code.aload(accumulator);
                get(pass.reduced(r));
                combine(pass.reductions().get(r), pass.reduced(r).dtype() == DType.F32 ? FLOATS : INTS);
                code.astore(accumulator);
            }
        }
        code.iinc(i, lanes * copies).goto_(loop).labelBinding(done);
        for (int a = 0; a < accumulators.length; a++) {
            code.aload(accumulators[a]);
            lane(a);
            into(pass.reduced(a * lanes / 16).dtype() == DType.F32 ? FLOATS : INTS);
        }
        code.return_();
    }

    /// A read that is the same for every i: loaded before the loop, repeated inside, from where HotSpot moves it out
    /// again.
    private void scalar(Value value, int port) {
        Port read = pass.reads().get(port);
        switch (read.kind()) {
            case EACH -> {
                return;
            }
            case COUNT, NUMBER -> code.aload(BASES).loadConstant(port).laload().l2i();
            case SAME -> {
                code.getstatic(MEMORY, "ALL", SEGMENT);
                switch (read.dtype()) {
                    case F32 -> get("JAVA_FLOAT_UNALIGNED", "OfFloat", CD_float, port);
                    case I32 -> get("JAVA_INT_UNALIGNED", "OfInt", CD_int, port);
                    default -> get("JAVA_BYTE", "OfByte", CD_byte, port);
                }
            }
        }
        int local = code.allocateLocal(read.dtype() == DType.F32 ? TypeKind.FLOAT : TypeKind.INT);
        scalars[value.id()] = local;
        if (read.dtype() == DType.F32) {
            code.fstore(local);
        } else {
            code.istore(local);
        }
    }

    private void get(String constant, String nested, ClassDesc type, int port) {
        ClassDesc layout = LAYOUTS.nested(nested);
        code.getstatic(LAYOUTS, constant, layout)
                .lload(bases[port])
                .invokeinterface(SEGMENT, "get", MethodTypeDesc.of(type, layout, CD_long));
    }

    /// Address of accumulator `a`: lanes [a · lanes, (a + 1) · lanes) of all reductions' lanes in a row.
    private void lane(int a) {
        int perReduction = 16 / lanes;
        address(pass.laneOperand(a / perReduction), a % perReduction, false);
    }

    private long address;
    private boolean moving;
    private int base;

    private void address(int operand, int copy, boolean each) {
        base = bases[operand];
        address = 4L * lanes * copy;
        moving = each;
    }

    private void pushAddress() {
        code.getstatic(MEMORY, "ALL", SEGMENT).lload(base);
        if (moving) {
            code.lload(offset).ladd();
        }
        if (address != 0) {
            code.loadConstant(address).ladd();
        }
        code.getstatic(ORDER, "LITTLE_ENDIAN", ORDER);
    }

    private void load(DType dtype) {
        ClassDesc type = dtype == DType.F32 ? FLOATS : INTS;
        species(type);
        pushAddress();
        code.invokestatic(type, "fromMemorySegment", MethodTypeDesc.of(type, SPECIES, SEGMENT, CD_long, ORDER));
    }

    private void into(ClassDesc type) {
        pushAddress();
        code.invokevirtual(type, "intoMemorySegment", MethodTypeDesc.of(CD_void, SEGMENT, CD_long, ORDER));
    }

    private void species(ClassDesc type) {
        code.getstatic(type, "SPECIES_" + 32 * lanes, SPECIES);
    }

    private void write(int copy) {
        for (int w = 0; w < pass.writes().size(); w++) {
            Value value = pass.output(w);
            ClassDesc type = value.dtype() == DType.F32 ? FLOATS : INTS;
            if (value.dtype() == DType.BOOL) {
                number(INTS, value);
            } else {
                get(value);
            }
            address(pass.reads().size() + w, copy, true);
            into(type);
        }
    }

    /// 1 where the mask is set, 0 elsewhere.
    private void number(ClassDesc type, Value mask) {
        if (type.equals(FLOATS)) {
            constant(0f);
            constant(1f);
        } else {
            constant(0);
            constant(1);
        }
        get(mask, type);
        code.invokevirtual(type, "blend", MethodTypeDesc.of(type, VECTOR, MASK));
    }

    private void keep(Value value) {
        int local = code.allocateLocal(TypeKind.REFERENCE);
        locals[value.id()] = local;
        code.astore(local);
    }

    private void get(Value value) {
        if (value.op() instanceof Op.Constant constant) {
            switch (value.dtype()) {
                case F32 -> constant(constant.data().getFloat(0));
                case I32 -> constant(constant.data().getInt(0));
                default -> {
                    constant(constant.data().getInt(0));
                    isNotZero();
                }
            }
        } else {
            code.aload(locals[value.id()]);
        }
    }

    private ClassDesc family(Value mask) {
        return masks.getOrDefault(mask.id(), INTS);
    }

    /// A mask for lanes of `type`.
    private void get(Value mask, ClassDesc type) {
        get(mask);
        if (!family(mask).equals(type)) {
            species(type);
            code.invokevirtual(MASK, "cast", MethodTypeDesc.of(MASK, SPECIES));
        }
    }

    private void constant(float x) {
        species(FLOATS);
        code.loadConstant(x).invokestatic(FLOATS, "broadcast", MethodTypeDesc.of(FLOATS, SPECIES, CD_float));
    }

    private void constant(int x) {
        species(INTS);
        code.loadConstant(x).invokestatic(INTS, "broadcast", MethodTypeDesc.of(INTS, SPECIES, CD_int));
    }

    private void isNotZero() {
        code.getstatic(OPERATORS, "NE", COMPARISON)
                .iconst_0()
                .invokevirtual(INTS, "compare", MethodTypeDesc.of(MASK, COMPARISON, CD_int));
    }

    private void emit(Value value, int copy) {
        switch (value.op()) {
            case Op.Input input -> input(value, Pass.port(input), copy);
            case Op.Unary op -> unary(value, op);
            case Op.Binary op -> binary(value, op);
            case Op.Fma op -> {
                get(op.a());
                get(op.b());
                get(op.c());
                code.invokevirtual(FLOATS, "fma", MethodTypeDesc.of(FLOATS, VECTOR, VECTOR));
            }
            case Op.Compare op -> compare(value, op);
            case Op.Select op -> select(value, op);
            case Op.Convert op -> convert(value, op.x(), op.to());
            case Op.Bitcast op -> {
                get(op.x());
                if (op.x().dtype() == DType.F32 && op.to() == DType.I32) {
                    code.invokevirtual(FLOATS, "reinterpretAsInts", MethodTypeDesc.of(INTS));
                } else if (op.x().dtype() == DType.I32 && op.to() == DType.F32) {
                    code.invokevirtual(INTS, "reinterpretAsFloats", MethodTypeDesc.of(FLOATS));
                }
            }
            default -> throw new IllegalArgumentException("pass: no code for " + value.op());
        }
    }

    private void input(Value value, int port, int copy) {
        Port read = pass.reads().get(port);
        switch (read.kind()) {
            case EACH -> {
                address(port, copy, true);
                load(read.dtype());
            }
            case COUNT -> {
                species(INTS);
                code.iload(scalars[value.id()]).iload(i).iadd();
                if (copy > 0) {
                    code.loadConstant(copy * lanes).iadd();
                }
                code.invokestatic(INTS, "broadcast", MethodTypeDesc.of(INTS, SPECIES, CD_int))
                        .iconst_1()
                        .invokevirtual(INTS, "addIndex", MethodTypeDesc.of(INTS, CD_int));
            }
            case SAME, NUMBER -> {
                boolean floats = read.dtype() == DType.F32;
                ClassDesc type = floats ? FLOATS : INTS;
                species(type);
                if (floats) {
                    code.fload(scalars[value.id()]);
                } else {
                    code.iload(scalars[value.id()]);
                }
                code.invokestatic(type, "broadcast", MethodTypeDesc.of(type, SPECIES, floats ? CD_float : CD_int));
            }
        }
        if (read.dtype() == DType.BOOL) {
            isNotZero();
        }
    }

    private void unary(Value value, Op.Unary op) {
        get(op.x());
        if (value.dtype() == DType.BOOL) {
            masks.put(value.id(), family(op.x()));
            code.invokevirtual(MASK, "not", MethodTypeDesc.of(MASK));
            return;
        }
        ClassDesc type = value.dtype() == DType.F32 ? FLOATS : INTS;
        String method = switch (op.kind()) {
            case NEGATE -> "neg";
            case ABS -> "abs";
            case SQRT -> "sqrt";
            case NOT -> "not";
            default -> throw new IllegalArgumentException("pass: no code for " + op);
        };
        code.invokevirtual(type, method, MethodTypeDesc.of(type));
    }

    private void binary(Value value, Op.Binary op) {
        get(op.a());
        if (value.dtype() == DType.BOOL) {
            masks.put(value.id(), family(op.a()));
            get(op.b(), family(op.a()));
            code.invokevirtual(MASK, maskMethod(op), MASKS);
            return;
        }
        ClassDesc type = value.dtype() == DType.F32 ? FLOATS : INTS;
        String lanewise = switch (op.kind()) {
            case SHIFT_LEFT -> "LSHL";
            case SHIFT_RIGHT -> "ASHR";
            case SHIFT_RIGHT_UNSIGNED -> "LSHR";
            case XOR -> "XOR";
            default -> "";
        };
        if (!lanewise.isEmpty()) {
            code.getstatic(OPERATORS, lanewise, op.kind() == BinaryKind.XOR ? OPERATORS.nested("Associative") : BINARY);
            if (op.b().op() instanceof Op.Constant constant) {
                code.loadConstant(constant.data().getInt(0))
                        .invokevirtual(INTS, "lanewise", MethodTypeDesc.of(INTS, BINARY, CD_int));
            } else {
                get(op.b());
                code.invokevirtual(INTS, "lanewise", MethodTypeDesc.of(INTS, BINARY, VECTOR));
            }
            return;
        }
        get(op.b());
        String method = switch (op.kind()) {
            case ADD -> "add";
            case SUBTRACT -> "sub";
            case MULTIPLY -> "mul";
            case DIVIDE -> "div";
            case MIN -> "min";
            case MAX -> "max";
            case AND -> "and";
            case OR -> "or";
            default -> throw new IllegalArgumentException("pass: no vector code for " + op);
        };
        code.invokevirtual(type, method, MethodTypeDesc.of(type, VECTOR));
    }

    private static String maskMethod(Op.Binary op) {
        return switch (op.kind()) {
            case AND -> "and";
            case OR -> "or";
            case XOR -> "xor";
            default -> throw new IllegalArgumentException("pass: no code for " + op);
        };
    }

    private void combine(ReduceKind kind, ClassDesc type) {
        String method = switch (kind) {
            case SUM -> "add";
            case PRODUCT -> "mul";
            case MIN -> "min";
            case MAX -> "max";
            case AND -> "and";
            case OR -> "or";
        };
        code.invokevirtual(type, method, MethodTypeDesc.of(type, VECTOR));
    }

    private void compare(Value value, Op.Compare op) {
        if (op.a().dtype() == DType.BOOL) {
            compareMasks(value, op);
            return;
        }
        ClassDesc type = op.a().dtype() == DType.F32 ? FLOATS : INTS;
        masks.put(value.id(), type);
        get(op.a());
        code.getstatic(OPERATORS, name(op.kind()), COMPARISON);
        get(op.b());
        code.invokevirtual(type, "compare", MethodTypeDesc.of(MASK, COMPARISON, VECTOR));
    }

    private static String name(CompareKind kind) {
        return switch (kind) {
            case EQUAL -> "EQ";
            case NOT_EQUAL -> "NE";
            case LESS -> "LT";
            case LESS_EQUAL -> "LE";
            case GREATER -> "GT";
            case GREATER_EQUAL -> "GE";
        };
    }

    /// false < true: a < b is ¬a ∧ b, a ≤ b is ¬a ∨ b.
    private void compareMasks(Value value, Op.Compare op) {
        boolean swap = op.kind() == CompareKind.GREATER || op.kind() == CompareKind.GREATER_EQUAL;
        Value a = swap ? op.b() : op.a();
        Value b = swap ? op.a() : op.b();
        masks.put(value.id(), family(a));
        get(a);
        if (op.kind() != CompareKind.NOT_EQUAL) {
            code.invokevirtual(MASK, "not", MethodTypeDesc.of(MASK));
        }
        get(b, family(a));
        String method = switch (op.kind()) {
            case EQUAL, NOT_EQUAL -> "xor";
            case LESS, GREATER -> "and";
            case LESS_EQUAL, GREATER_EQUAL -> "or";
        };
        code.invokevirtual(MASK, method, MASKS);
    }

    private void select(Value value, Op.Select op) {
        if (value.dtype() == DType.BOOL) {
            ClassDesc type = family(op.condition());
            masks.put(value.id(), type);
            get(op.condition());
            get(op.a(), type);
            code.invokevirtual(MASK, "and", MASKS);
            get(op.condition());
            code.invokevirtual(MASK, "not", MethodTypeDesc.of(MASK));
            get(op.b(), type);
            code.invokevirtual(MASK, "and", MASKS).invokevirtual(MASK, "or", MASKS);
            return;
        }
        ClassDesc type = value.dtype() == DType.F32 ? FLOATS : INTS;
        get(op.b());
        get(op.a());
        get(op.condition(), type);
        code.invokevirtual(type, "blend", MethodTypeDesc.of(type, VECTOR, MASK));
    }

    private void convert(Value value, Value x, DType to) {
        DType from = x.dtype();
        if (from == DType.BOOL && to != DType.BOOL) {
            number(to == DType.F32 ? FLOATS : INTS, x);
            return;
        }
        get(x);
        if (from == to) {
            if (to == DType.BOOL) {
                masks.put(value.id(), family(x));
            }
        } else if (to == DType.BOOL) {
            if (from == DType.F32) {
                masks.put(value.id(), FLOATS);
                code.getstatic(OPERATORS, "NE", COMPARISON)
                        .fconst_0()
                        .invokevirtual(FLOATS, "compare", MethodTypeDesc.of(MASK, COMPARISON, CD_float));
            } else {
                isNotZero();
            }
        } else {
            boolean toFloat = to == DType.F32;
            code.getstatic(OPERATORS, toFloat ? "I2F" : "F2I", CONVERSION)
                    .iconst_0()
                    .invokevirtual(VECTOR, "convert", MethodTypeDesc.of(VECTOR, CONVERSION, CD_int))
                    .checkcast(toFloat ? FLOATS : INTS);
        }
    }
}
