package ingot.ir;

import ingot.ir.Op.BinaryKind;
import ingot.ir.Op.CompareKind;
import ingot.ir.Op.UnaryKind;

/// Element by element.
final class Pointwise {
    private Pointwise() {}

    static void unary(UnaryKind kind, Tensor x, Tensor result) {
        if (x.type().dtype().isFloating()) {
            float[] out = Elements.target(result);
            unary(kind, Elements.floats(x), out);
            Elements.store(result, out);
        } else {
            long[] out = new long[Elements.count(result.type())];
            unary(kind, Elements.longs(x), out, x.type().dtype());
            Elements.store(result, out);
        }
    }

    private static void unary(UnaryKind kind, float[] x, float[] out) {
        int n = out.length;
        switch (kind) {
            case NEGATE -> {
                for (int i = 0; i < n; i++) {
                    out[i] = -x[i];
                }
            }
            case ABS -> {
                for (int i = 0; i < n; i++) {
                    out[i] = Math.abs(x[i]);
                }
            }
            case SIGN -> {
                for (int i = 0; i < n; i++) {
                    out[i] = Math.signum(x[i]);
                }
            }
            case FLOOR -> {
                for (int i = 0; i < n; i++) {
                    out[i] = (float) Math.floor(x[i]);
                }
            }
            case CEIL -> {
                for (int i = 0; i < n; i++) {
                    out[i] = (float) Math.ceil(x[i]);
                }
            }
            case ROUND -> {
                for (int i = 0; i < n; i++) {
                    out[i] = (float) Math.rint(x[i]);
                }
            }
            case SQRT -> {
                for (int i = 0; i < n; i++) {
                    out[i] = (float) Math.sqrt(x[i]);
                }
            }
            case EXP -> {
                for (int i = 0; i < n; i++) {
                    out[i] = ScalarMath.exp(x[i]);
                }
            }
            case LOG -> {
                for (int i = 0; i < n; i++) {
                    out[i] = ScalarMath.log(x[i]);
                }
            }
            case SIN -> {
                for (int i = 0; i < n; i++) {
                    out[i] = ScalarMath.sin(x[i]);
                }
            }
            case COS -> {
                for (int i = 0; i < n; i++) {
                    out[i] = ScalarMath.cos(x[i]);
                }
            }
            case TANH -> {
                for (int i = 0; i < n; i++) {
                    out[i] = ScalarMath.tanh(x[i]);
                }
            }
            case ERF -> {
                for (int i = 0; i < n; i++) {
                    out[i] = ScalarMath.erf(x[i]);
                }
            }
            case NOT -> throw new IllegalArgumentException("not: undefined for floats");
        }
    }

    private static void unary(UnaryKind kind, long[] x, long[] out, DType dtype) {
        int n = out.length;
        switch (kind) {
            case NEGATE -> {
                for (int i = 0; i < n; i++) {
                    out[i] = -x[i];
                }
            }
            case ABS -> {
                for (int i = 0; i < n; i++) {
                    out[i] = Math.abs(x[i]);
                }
            }
            case SIGN -> {
                for (int i = 0; i < n; i++) {
                    out[i] = Long.signum(x[i]);
                }
            }
            case NOT -> {
                for (int i = 0; i < n; i++) {
                    out[i] = dtype == DType.BOOL ? x[i] ^ 1 : ~x[i];
                }
            }
            case FLOOR, CEIL, ROUND, SQRT, EXP, LOG, SIN, COS, TANH, ERF ->
                throw new IllegalArgumentException(kind + ": undefined for " + dtype);
        }
    }

    static void binary(BinaryKind kind, Tensor a, Tensor b, Tensor result) {
        if (a.type().dtype().isFloating()) {
            float[] out = Elements.target(result);
            binary(kind, Elements.floats(a), Elements.floats(b), out);
            Elements.store(result, out);
        } else {
            long[] out = new long[Elements.count(result.type())];
            binary(kind, Elements.longs(a), Elements.longs(b), out, a.type().dtype());
            Elements.store(result, out);
        }
    }

    private static void binary(BinaryKind kind, float[] a, float[] b, float[] out) {
        int n = out.length;
        switch (kind) {
            case ADD -> {
                for (int i = 0; i < n; i++) {
                    out[i] = a[i] + b[i];
                }
            }
            case SUBTRACT -> {
                for (int i = 0; i < n; i++) {
                    out[i] = a[i] - b[i];
                }
            }
            case MULTIPLY -> {
                for (int i = 0; i < n; i++) {
                    out[i] = a[i] * b[i];
                }
            }
            case DIVIDE -> {
                for (int i = 0; i < n; i++) {
                    out[i] = a[i] / b[i];
                }
            }
            case REMAINDER -> {
                for (int i = 0; i < n; i++) {
                    out[i] = a[i] % b[i];
                }
            }
            case MIN -> {
                for (int i = 0; i < n; i++) {
                    out[i] = Math.min(a[i], b[i]);
                }
            }
            case MAX -> {
                for (int i = 0; i < n; i++) {
                    out[i] = Math.max(a[i], b[i]);
                }
            }
            case POWER -> {
                for (int i = 0; i < n; i++) {
                    out[i] = ScalarMath.power(a[i], b[i]);
                }
            }
            case AND, OR, XOR, SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_UNSIGNED ->
                throw new IllegalArgumentException(kind + ": undefined for floats");
        }
    }

    private static void binary(BinaryKind kind, long[] a, long[] b, long[] out, DType dtype) {
        int bits = 8 * dtype.bytes();
        long mask = bits == 64 ? -1L : (1L << bits) - 1;
        for (int i = 0; i < out.length; i++) {
            out[i] = switch (kind) {
                case ADD -> a[i] + b[i];
                case SUBTRACT -> a[i] - b[i];
                case MULTIPLY -> a[i] * b[i];
                case DIVIDE -> b[i] == 0 ? 0 : a[i] / b[i];
                case REMAINDER -> b[i] == 0 ? 0 : a[i] % b[i];
                case MIN -> Math.min(a[i], b[i]);
                case MAX -> Math.max(a[i], b[i]);
                case AND -> a[i] & b[i];
                case OR -> a[i] | b[i];
                case XOR -> a[i] ^ b[i];
                case SHIFT_LEFT -> a[i] << (b[i] & (bits - 1));
                case SHIFT_RIGHT -> a[i] >> (b[i] & (bits - 1));
                case SHIFT_RIGHT_UNSIGNED -> (a[i] & mask) >>> (b[i] & (bits - 1));
                case POWER -> throw new IllegalArgumentException("power: undefined for " + dtype);
            };
        }
    }

    static void fma(Tensor a, Tensor b, Tensor c, Tensor result) {
        float[] x = Elements.floats(a);
        float[] y = Elements.floats(b);
        float[] z = Elements.floats(c);
        float[] out = Elements.target(result);
        for (int i = 0; i < out.length; i++) {
            out[i] = Math.fma(x[i], y[i], z[i]);
        }
        Elements.store(result, out);
    }

    static void compare(CompareKind kind, Tensor a, Tensor b, Tensor result) {
        long[] out = new long[Elements.count(result.type())];
        if (a.type().dtype().isFloating()) {
            float[] x = Elements.floats(a);
            float[] y = Elements.floats(b);
            for (int i = 0; i < out.length; i++) {
                boolean holds = switch (kind) {
                    case EQUAL -> x[i] == y[i];
                    case NOT_EQUAL -> x[i] != y[i];
                    case LESS -> x[i] < y[i];
                    case LESS_EQUAL -> x[i] <= y[i];
                    case GREATER -> x[i] > y[i];
                    case GREATER_EQUAL -> x[i] >= y[i];
                };
                out[i] = holds ? 1 : 0;
            }
        } else {
            long[] x = Elements.longs(a);
            long[] y = Elements.longs(b);
            for (int i = 0; i < out.length; i++) {
                boolean holds = switch (kind) {
                    case EQUAL -> x[i] == y[i];
                    case NOT_EQUAL -> x[i] != y[i];
                    case LESS -> x[i] < y[i];
                    case LESS_EQUAL -> x[i] <= y[i];
                    case GREATER -> x[i] > y[i];
                    case GREATER_EQUAL -> x[i] >= y[i];
                };
                out[i] = holds ? 1 : 0;
            }
        }
        Elements.store(result, out);
    }

    static void select(Tensor condition, Tensor a, Tensor b, Tensor result) {
        long[] chosen = Elements.longs(condition);
        if (a.type().dtype().isFloating()) {
            float[] x = Elements.floats(a);
            float[] y = Elements.floats(b);
            float[] out = Elements.target(result);
            for (int i = 0; i < out.length; i++) {
                out[i] = chosen[i] != 0 ? x[i] : y[i];
            }
            Elements.store(result, out);
        } else {
            long[] x = Elements.longs(a);
            long[] y = Elements.longs(b);
            long[] out = new long[x.length];
            for (int i = 0; i < out.length; i++) {
                out[i] = chosen[i] != 0 ? x[i] : y[i];
            }
            Elements.store(result, out);
        }
    }

    static void convert(Tensor x, Tensor result) {
        if (x.type().dtype().isFloating()) {
            float[] values = Elements.floats(x);
            if (result.type().dtype().isFloating()) {
                Elements.store(result, values);
                return;
            }
            for (int i = 0; i < values.length; i++) {
                result.setFloat(i, values[i]);
            }
        } else {
            long[] values = Elements.longs(x);
            for (int i = 0; i < values.length; i++) {
                result.setLong(i, values[i]);
            }
        }
    }
}
