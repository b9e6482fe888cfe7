package ingot.cpu;

import static java.lang.constant.ConstantDescs.CD_Object;
import static java.lang.constant.ConstantDescs.CD_double;
import static java.lang.constant.ConstantDescs.CD_float;
import static java.lang.constant.ConstantDescs.CD_int;
import static java.lang.constant.ConstantDescs.CD_void;

import ingot.cpu.Pass.Kind;
import ingot.cpu.Pass.Port;
import ingot.ir.DType;
import ingot.ir.Op;
import ingot.ir.Op.CompareKind;
import ingot.ir.Value;
import java.lang.classfile.ClassFile;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.Label;
import java.lang.classfile.TypeKind;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.util.List;

/// Writes the bytecode of a pass as one plain loop over arrays: Java arithmetic, which HotSpot may vectorise by itself.
final class ScalarWriter {
    private static final ClassDesc MATH = ClassDesc.of("java.lang.Math");
    private static final ClassDesc FLOAT = ClassDesc.of("java.lang.Float");
    private static final ClassDesc INTEGERS = ClassDesc.of("ingot.cpu.Integers");
    private static final ClassDesc FLOATS = CD_float.arrayType();
    private static final ClassDesc INTS = CD_int.arrayType();
    private static final MethodTypeDesc FF_F = MethodTypeDesc.of(CD_float, CD_float, CD_float);
    private static final MethodTypeDesc II_I = MethodTypeDesc.of(CD_int, CD_int, CD_int);
    private static final MethodTypeDesc RUN = MethodTypeDesc.of(CD_void, FLOATS.arrayType(), INTS.arrayType(), CD_int);
    private static final int FLOAT_ARRAYS = 1;
    private static final int INT_ARRAYS = 2;
    private static final int N = 3;

    private final Pass pass;
    private final CodeBuilder code;
    private final int[] locals;
    private final int[] arrays;
    private final int i;

    private ScalarWriter(Pass pass, CodeBuilder code) {
        this.pass = pass;
        this.code = code;
        arrays = new int[pass.operands()];
        locals = new int[pass.body().values().size()];
        i = code.allocateLocal(TypeKind.INT);
    }

    static ScalarCode define(Pass pass) {
        byte[] bytes = ClassFile.of()
                .build(
                        ClassDesc.of("ingot.cpu.ScalarPass"),
                        type -> type.withFlags(ClassFile.ACC_FINAL)
                                .withInterfaceSymbols(ClassDesc.of("ingot.cpu.ScalarCode"))
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
                                        c -> new ScalarWriter(pass, c).body(pass.live())));
        return HiddenClasses.instance(bytes, ScalarCode.class);
    }

    private void body(List<Value> live) {
        for (int k = 0; k < arrays.length; k++) {
            boolean isFloat = dtype(k) == DType.F32;
            arrays[k] = code.allocateLocal(TypeKind.REFERENCE);
            code.aload(isFloat ? FLOAT_ARRAYS : INT_ARRAYS)
                    .loadConstant(k)
                    .aaload()
                    .astore(arrays[k]);
        }
        for (Value value : live) {
            if (value.op() instanceof Op.Input input && !perElement(input)) {
                array(Pass.port(input), true);
                store(value);
            }
        }
        Label loop = code.newLabel();
        Label done = code.newLabel();
        code.iconst_0().istore(i).labelBinding(loop).iload(i).iload(N).if_icmpge(done);
        for (Value value : live) {
            if (value.op() instanceof Op.Constant || value.op() instanceof Op.Input input && !perElement(input)) {
                continue;
            }
            emit(value);
            store(value);
        }
        int outputs = pass.writes().size() + pass.reductions().size();
        for (int out = 0; out < outputs; out++) {
            Value value = pass.output(out);
            code.aload(arrays[pass.reads().size() + out]).iload(i);
            load(value);
            if (value.dtype() == DType.F32) {
                code.fastore();
            } else {
                code.iastore();
            }
        }
        code.iinc(i, 1).goto_(loop).labelBinding(done).return_();
    }

    private DType dtype(int operand) {
        return operand < pass.reads().size()
                ? pass.reads().get(operand).dtype()
                : pass.output(operand - pass.reads().size()).dtype();
    }

    private boolean perElement(Op.Input input) {
        Port port = pass.reads().get(Pass.port(input));
        return port.kind() == Kind.EACH || port.kind() == Kind.COUNT;
    }

    private void array(int operand, boolean first) {
        code.aload(arrays[operand]);
        if (first) {
            code.iconst_0();
        } else {
            code.iload(i);
        }
        if (dtype(operand) == DType.F32) {
            code.faload();
        } else {
            code.iaload();
        }
    }

    private void store(Value value) {
        boolean isFloat = value.dtype() == DType.F32;
        int local = code.allocateLocal(isFloat ? TypeKind.FLOAT : TypeKind.INT);
        locals[value.id()] = local;
        if (isFloat) {
            code.fstore(local);
        } else {
            code.istore(local);
        }
    }

    private void load(Value value) {
        if (value.op() instanceof Op.Constant constant) {
            if (value.dtype() == DType.F32) {
                code.loadConstant(constant.data().getFloat(0));
            } else {
                code.loadConstant(constant.data().getInt(0));
            }
        } else if (value.dtype() == DType.F32) {
            code.fload(locals[value.id()]);
        } else {
            code.iload(locals[value.id()]);
        }
    }

    private void emit(Value value) {
        switch (value.op()) {
            case Op.Input input -> array(Pass.port(input), false);
            case Op.Unary op -> unary(op);
            case Op.Binary op -> binary(op);
            case Op.Fma op -> {
                load(op.a());
                load(op.b());
                load(op.c());
                code.invokestatic(MATH, "fma", MethodTypeDesc.of(CD_float, CD_float, CD_float, CD_float));
            }
            case Op.Compare op -> compare(op);
            case Op.Select op -> select(op);
            case Op.Convert op -> convert(op.x(), op.to());
            case Op.Bitcast op -> {
                load(op.x());
                if (op.x().dtype() == DType.F32 && op.to() == DType.I32) {
                    code.invokestatic(FLOAT, "floatToRawIntBits", MethodTypeDesc.of(CD_int, CD_float));
                } else if (op.to() == DType.F32) {
                    code.invokestatic(FLOAT, "intBitsToFloat", MethodTypeDesc.of(CD_float, CD_int));
                }
            }
            default -> throw new IllegalArgumentException("pass: no code for " + value.op());
        }
    }

    private void unary(Op.Unary op) {
        load(op.x());
        boolean isFloat = op.x().dtype() == DType.F32;
        switch (op.kind()) {
            case NEGATE -> {
                if (isFloat) {
                    code.fneg();
                } else {
                    code.ineg();
                }
            }
            case ABS -> {
                ClassDesc type = isFloat ? CD_float : CD_int;
                code.invokestatic(MATH, "abs", MethodTypeDesc.of(type, type));
            }
            case SQRT ->
                code.f2d()
                        .invokestatic(MATH, "sqrt", MethodTypeDesc.of(CD_double, CD_double))
                        .d2f();
            case NOT -> code.loadConstant(op.x().dtype() == DType.BOOL ? 1 : -1).ixor();
            default -> throw new IllegalArgumentException("pass: no code for " + op);
        }
    }

    private void binary(Op.Binary op) {
        load(op.a());
        load(op.b());
        if (op.a().dtype() == DType.F32) {
            switch (op.kind()) {
                case ADD -> code.fadd();
                case SUBTRACT -> code.fsub();
                case MULTIPLY -> code.fmul();
                case DIVIDE -> code.fdiv();
                case REMAINDER -> code.frem();
                case MIN -> code.invokestatic(MATH, "min", FF_F);
                case MAX -> code.invokestatic(MATH, "max", FF_F);
                default -> throw new IllegalArgumentException("pass: no code for " + op);
            }
            return;
        }
        switch (op.kind()) {
            case ADD -> code.iadd();
            case SUBTRACT -> code.isub();
            case MULTIPLY -> code.imul();
            case DIVIDE -> code.invokestatic(INTEGERS, "divide", II_I);
            case REMAINDER -> code.invokestatic(INTEGERS, "remainder", II_I);
            case MIN -> code.invokestatic(MATH, "min", II_I);
            case MAX -> code.invokestatic(MATH, "max", II_I);
            case AND -> code.iand();
            case OR -> code.ior();
            case XOR -> code.ixor();
            case SHIFT_LEFT -> code.ishl();
            case SHIFT_RIGHT -> code.ishr();
            case SHIFT_RIGHT_UNSIGNED -> code.iushr();
            case POWER -> throw new IllegalArgumentException("pass: no code for " + op);
        }
    }

    private void compare(Op.Compare op) {
        Label no = code.newLabel();
        Label end = code.newLabel();
        load(op.a());
        load(op.b());
        unless(op.kind(), op.a().dtype() == DType.F32, no);
        code.iconst_1().goto_(end).labelBinding(no).iconst_0().labelBinding(end);
    }

    /// Jumps if the comparison of the two values on the stack is false; NaN is unequal and unordered.
    private void unless(CompareKind kind, boolean floats, Label no) {
        if (floats) {
            switch (kind) {
                case EQUAL -> code.fcmpl().ifne(no);
                case NOT_EQUAL -> code.fcmpl().ifeq(no);
                case LESS -> code.fcmpg().ifge(no);
                case LESS_EQUAL -> code.fcmpg().ifgt(no);
                case GREATER -> code.fcmpl().ifle(no);
                case GREATER_EQUAL -> code.fcmpl().iflt(no);
            }
            return;
        }
        switch (kind) {
            case EQUAL -> code.if_icmpne(no);
            case NOT_EQUAL -> code.if_icmpeq(no);
            case LESS -> code.if_icmpge(no);
            case LESS_EQUAL -> code.if_icmpgt(no);
            case GREATER -> code.if_icmple(no);
            case GREATER_EQUAL -> code.if_icmplt(no);
        }
    }

    private void select(Op.Select op) {
        Label no = code.newLabel();
        Label end = code.newLabel();
        load(op.condition());
        code.ifeq(no);
        load(op.a());
        code.goto_(end).labelBinding(no);
        load(op.b());
        code.labelBinding(end);
    }

    private void convert(Value x, DType to) {
        load(x);
        DType from = x.dtype();
        if (from == to || from == DType.BOOL && to == DType.I32) {
            return;
        }
        if (to == DType.BOOL) {
            Label no = code.newLabel();
            Label end = code.newLabel();
            if (from == DType.F32) {
                code.fconst_0();
            } else {
                code.iconst_0();
            }
            unless(CompareKind.NOT_EQUAL, from == DType.F32, no);
            code.iconst_1().goto_(end).labelBinding(no).iconst_0().labelBinding(end);
        } else if (to == DType.F32) {
            code.i2f();
        } else {
            code.f2i();
        }
    }
}
