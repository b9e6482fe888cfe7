package ingot.nn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ingot.autodiff.Gradients;
import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FunctionTest {
    private static final float[] POINTS = {-200, -90, -20, -3, -1, -0.1f, 0, 0.1f, 1, 3, 20, 90, 200};

    @Test
    void activations() {
        check(Activations::relu, x -> Math.max(x, 0));
        check(Activations::sigmoid, x -> 1 / (1 + Math.exp(-x)));
        check(Activations::silu, x -> x / (1 + Math.exp(-x)));
        check(Activations::geluTanh, x -> {
            double u = Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x);
            return 0.5 * x * (1 + Math.tanh(u));
        });
    }

    @Test
    void geluByTheErrorFunction() {
        float[] found = run((b, x) -> Activations.gelu(b, x.getFirst()), Tensor.of(Shape.of(4), -1f, 0f, 1f, 2f));
        // Φ(1) = 0.8413447, Φ(2) = 0.9772499
        assertThat(found).containsExactly(new float[] {-0.1586553f, 0, 0.8413447f, 1.9544997f}, within(2e-7f));
    }

    @Test
    void gradientsStayFiniteFarOut() {
        for (BiFunction<GraphBuilder, Value, Value> function : List.<BiFunction<GraphBuilder, Value, Value>>of(
                Activations::sigmoid, Activations::silu, Activations::geluTanh)) {
            GraphBuilder b = new GraphBuilder("far");
            Value x = b.input("0", Type.f32(POINTS.length));
            Value y = function.apply(b, x);
            b.output(
                    "dx",
                    ingot.autodiff.Gradients.of(b, b.sum(y, 0), List.of(x)).getFirst());
            Tensor points = Tensor.of(Shape.of(POINTS.length), POINTS);
            for (float slope : Interpreter.run(b.build(), Map.of("0", points), Map.of())
                    .get("dx")
                    .toFloats()) {
                assertThat(slope).isBetween(-0.2f, 1.2f);
            }
        }
    }

    @Test
    void softmaxOfLargeLogitsAndItsLogarithm() {
        Tensor x = Tensor.of(Shape.of(2, 3), 1000f, 1001f, 1002f, -5f, -5f, -5f);
        double e = Math.exp(-1);
        double total = 1 + e + e * e;
        float third = 1 / 3f;
        assertThat(run((b, in) -> Softmax.softmax(b, in.getFirst()), x))
                .containsExactly(
                        new float[] {
                            (float) (e * e / total), (float) (e / total), (float) (1 / total), third, third, third
                        },
                        within(1e-6f));
        assertThat(run((b, in) -> Softmax.logSoftmax(b, in.getFirst()), x)[2])
                .isCloseTo((float) -Math.log(total), within(1e-6f));
    }

    @Test
    void layerNormHasMeanZeroAndVarianceOne() {
        Tensor x = Sample.floats(1, 3, 16);
        float[] y = run(
                (b, in) -> {
                    Value one = b.broadcast(b.constant(1f), Shape.of(16));
                    return Norms.layerNorm(b, in.getFirst(), one, b.broadcast(b.constant(0f), Shape.of(16)), 1e-12);
                },
                x);
        for (int row = 0; row < 3; row++) {
            double mean = 0;
            double square = 0;
            for (int i = 0; i < 16; i++) {
                mean += y[row * 16 + i] / 16.0;
                square += y[row * 16 + i] * y[row * 16 + i] / 16.0;
            }
            assertThat(mean).isCloseTo(0, within(1e-6));
            assertThat(square).isCloseTo(1, within(1e-5));
        }
    }

    @Test
    void crossEntropyOfKnownProbabilities() {
        Tensor logits = Tensor.of(Shape.of(3, 2), 0f, 0f, 0f, (float) Math.log(3), 7f, 7f);
        Tensor targets = Tensor.of(Shape.of(3), 0, 1, CrossEntropy.IGNORED);
        assertThat(run((b, in) -> CrossEntropy.crossEntropy(b, in.getFirst(), b.constant(targets)), logits))
                .containsExactly(new float[] {(float) Math.log(2), (float) Math.log(4 / 3.0), 0}, within(1e-6f));
    }

    @Test
    void groupedHeadsAreRepeatedHeads() {
        Tensor q = Sample.floats(1, 2, 3, 4, 5);
        Tensor k = Sample.floats(2, 2, 3, 2, 5);
        Tensor v = Sample.floats(3, 2, 3, 2, 5);
        Attention.Options options = Attention.Options.of(true, 5);
        float[] grouped =
                run((b, in) -> Attention.attention(b, in.get(0), in.get(1), in.get(2), null, options, null), q, k, v);
        Tensor heads = Tensor.of(Shape.of(4), 0, 0, 1, 1);
        float[] repeated = run(
                (b, in) -> Attention.attention(
                        b,
                        in.get(0),
                        b.gather(in.get(1), b.constant(heads), 2),
                        b.gather(in.get(2), b.constant(heads), 2),
                        null,
                        options,
                        null),
                q,
                k,
                v);
        assertThat(grouped).isEqualTo(repeated);
    }

    /// Blocks of queries divide 256 and 384 but no prime. What follows the last query of a
    /// causal attention changes nothing before it, and what has no cotangent adds 0 to the gradients.
    @ParameterizedTest
    @CsvSource({"256, 257, 2, true, false", "256, 257, 1, true, false", "384, 389, 1, true, true"})
    void blocksOfQueriesChangeNoBit(int length, int prime, int keyHeads, boolean causal, boolean masked) {
        List<Tensor> operands = List.of(
                Sample.floats(1, 1, prime, 2, 3),
                Sample.floats(2, 1, prime, keyHeads, 3),
                Sample.floats(3, 1, prime, keyHeads, 3),
                Sample.floats(4, 1, prime, 2, 3));
        Tensor mask = Tensor.zeros(new Type(DType.BOOL, Shape.of(1, 1, 1, prime)));
        for (int i = 0; i < prime; i++) {
            mask.setLong(i, i % 5 == 3 ? 0 : 1);
        }
        List<float[]> found = new java.util.ArrayList<>();
        for (boolean blocks : new boolean[] {false, true}) {
            GraphBuilder b = new GraphBuilder("attention");
            List<Value> x = new java.util.ArrayList<>();
            for (Tensor operand : operands) {
                Value whole = b.constant(operand);
                Value part = b.slice(whole, 1, 0, length);
                // without blocks the rest has no cotangent
                x.add(blocks ? part : x.size() == 3 ? padded(b, part, prime) : whole);
            }
            Value seen = b.constant(mask);
            Value y = Attention.attention(
                    b,
                    x.get(0),
                    x.get(1),
                    x.get(2),
                    masked ? blocks ? b.slice(seen, 3, 0, length) : seen : null,
                    Attention.Options.of(causal, 3),
                    null);
            List<Value> all = new java.util.ArrayList<>(List.of(y));
            all.addAll(Gradients.vjp(b, List.of(y), List.of(x.get(3)), x.subList(0, 3)));
            for (int i = 0; i < all.size(); i++) {
                b.output(Integer.toString(i), b.slice(all.get(i), 1, 0, length));
            }
            Map<String, Tensor> results = Interpreter.run(b.build(), Map.of(), Map.of());
            for (int i = 0; i < all.size(); i++) {
                if (blocks) {
                    assertThat(results.get(Integer.toString(i)).toFloats())
                            .as("result " + i)
                            .isEqualTo(found.get(i));
                } else {
                    found.add(results.get(Integer.toString(i)).toFloats());
                }
            }
        }
    }

    private static Value padded(GraphBuilder b, Value x, int length) {
        int[] dims = x.shape().dims();
        dims[1] = length - dims[1];
        return b.concatenate(List.of(x, b.constant(Tensor.zeros(new Type(x.dtype(), Shape.of(dims))))), 1);
    }

    /// Not causal: blocks of a long sequence against the same queries in two halves of a length that is not divided.
    @Test
    void blocksOfLongSequencesChangeNoBit() {
        int length = 1024;
        Tensor q = Sample.floats(1, 1, length, 1, 2);
        Tensor k = Sample.floats(2, 1, length, 1, 2);
        Attention.Options options = Attention.Options.of(false, 2);
        float[] blocks =
                run((b, in) -> Attention.attention(b, in.get(0), in.get(1), in.get(1), null, options, null), q, k);
        float[] halves = run(
                (b, in) -> b.concatenate(
                        List.of(
                                Attention.attention(
                                        b, b.slice(in.get(0), 1, 0, 500), in.get(1), in.get(1), null, options, null),
                                Attention.attention(
                                        b,
                                        b.slice(in.get(0), 1, 500, length),
                                        in.get(1),
                                        in.get(1),
                                        null,
                                        options,
                                        null)),
                        1),
                q,
                k);
        assertThat(blocks).isEqualTo(halves);
    }

    @Test
    void booleanMaskIsAnAddedOneOfMinusInfinity() {
        Tensor q = Sample.floats(1, 1, 3, 2, 4);
        Tensor seen = Tensor.of(Shape.of(1, 1, 1, 3), true, false, true);
        float far = Float.NEGATIVE_INFINITY;
        Tensor added = Tensor.of(Shape.of(1, 1, 1, 3), 0f, far, 0f);
        Attention.Options options = Attention.Options.of(false, 4);
        float[] one = run(
                (b, in) -> Attention.attention(b, in.get(0), in.get(0), in.get(0), b.constant(seen), options, null), q);
        float[] other = run(
                (b, in) -> Attention.attention(b, in.get(0), in.get(0), in.get(0), b.constant(added), options, null),
                q);
        assertThat(one).isEqualTo(other);
    }

    @Test
    void dropoutKeepsItsShare() {
        Tensor ones = Tensor.zeros(Type.f32(100, 100));
        for (int i = 0; i < 10_000; i++) {
            ones.setFloat(i, 1);
        }
        float[] y = run(
                (b, in) -> {
                    Randomness random = new Randomness(b.constant(Tensor.of(Shape.of(4), 1, 2, 3, 0)));
                    return Activations.dropout(b, in.getFirst(), 0.3, random, 100);
                },
                ones);
        int kept = 0;
        for (float value : y) {
            assertThat(value == 0 || value == (float) (1 / 0.7)).isTrue();
            kept += value == 0 ? 0 : 1;
        }
        assertThat(kept).isBetween(6_800, 7_200);
    }

    @Test
    void wrongShapesAreNamed() {
        GraphBuilder b = new GraphBuilder("wrong");
        Value q = b.input("q", Type.f32(2, 3, 4, 5));
        Value k = b.input("k", Type.f32(2, 3, 3, 5));
        Attention.Options options = Attention.Options.of(true, 5);
        assertThatThrownBy(() -> Attention.attention(b, q, k, k, null, options, null))
                .isInstanceOf(IngotException.class)
                .hasMessage(
                        "attention: expected q [B, T, H, D] and k, v [B, S, K, D] with K dividing H, got [2, 3, 4, 5]"
                                + " at %0, [2, 3, 3, 5] at %1, [2, 3, 3, 5] at %1");
        Value mask = b.input("mask", Type.bool(2, 1, 3, 4));
        assertThatThrownBy(() -> Attention.attention(b, q, q, q, mask, options, null))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(
                        "mask expected bool or f32 [2 or 1, 4 or 1, 3 or 1, 3], got bool[2, 1, 3, 4] at %2");
        Value targets = b.input("targets", Type.i32(4));
        assertThatThrownBy(() -> CrossEntropy.crossEntropy(b, b.input("logits", Type.f32(3, 7)), targets))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("got f32[3, 7] at %4 and i32[4] at %3");
        assertThatThrownBy(() -> Layers.split(b, q, 3, 3))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("split: axis 3 of [2, 3, 4, 5] does not divide into 3 parts");
    }

    private static void check(BiFunction<GraphBuilder, Value, Value> function, DoubleUnaryOperator expected) {
        float[] found = run((b, x) -> function.apply(b, x.getFirst()), Tensor.of(Shape.of(POINTS.length), POINTS));
        for (int i = 0; i < POINTS.length; i++) {
            double y = expected.applyAsDouble(POINTS[i]);
            assertThat((double) found[i]).as("at " + POINTS[i]).isCloseTo(y, within(1e-6 + 1e-6 * Math.abs(y)));
        }
    }

    private static float[] run(BiFunction<GraphBuilder, List<Value>, Value> body, Tensor... operands) {
        GraphBuilder b = new GraphBuilder("run");
        Map<String, Tensor> inputs = new java.util.HashMap<>();
        List<Value> values = new java.util.ArrayList<>();
        for (Tensor operand : operands) {
            String name = Integer.toString(values.size());
            inputs.put(name, operand);
            values.add(b.input(name, operand.type()));
        }
        b.output("y", body.apply(b, values));
        return Interpreter.run(b.build(), inputs, Map.of()).get("y").toFloats();
    }
}
