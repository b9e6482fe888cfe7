package ingot.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.MathExpansion;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Tensor;
import ingot.ir.TextForm;
import ingot.ir.Value;
import ingot.ir.Verifier;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class RandomGraphsTest {
    private static final int GRAPHS = 200;

    @Test
    void coverAllOpsAndAreRepeatable() {
        Set<Class<?>> used = new HashSet<>();
        for (int seed = 0; seed < GRAPHS; seed++) {
            Graph graph = RandomGraphs.of(seed, 20).graph();
            graph.values().forEach(value -> used.add(value.op().getClass()));
            assertThat(graph.outputs()).isNotEmpty();
            assertThat(RandomGraphs.of(seed, 20).graph()).isEqualTo(graph);
        }
        Set<Class<?>> all = new HashSet<>(List.of(Op.class.getPermittedSubclasses()));
        all.remove(Op.Custom.class);
        assertThat(used).containsAll(all);
    }

    @Test
    void verifyAndSurviveTheTextForm() {
        for (int seed = 0; seed < GRAPHS; seed++) {
            Graph graph = RandomGraphs.of(seed, 20).graph();
            Verifier.check(graph);
            assertThat(TextForm.parse(TextForm.print(graph, true))).isEqualTo(graph);
        }
    }

    @Test
    void everyOpKeepsItsBitsOutsideTheHeap() {
        for (int seed = 0; seed < GRAPHS; seed++) {
            GraphCase c = RandomGraphs.of(seed, 12);
            try (var arena = java.lang.foreign.Arena.ofConfined()) {
                Map<Value, Tensor> known = new HashMap<>();
                for (Value value : c.graph().values()) {
                    Tensor result = Tensor.over(
                            value.type(), arena.allocate(value.type().bytes(), 8));
                    switch (value.op()) {
                        case Op.Input x ->
                            result.data().copyFrom(c.inputs().get(x.name()).data());
                        case Op.Weight x ->
                            result.data().copyFrom(c.weights().get(x.name()).data());
                        case Op.Result x -> {
                            Op.Composite call = (Op.Composite) x.composite().op();
                            List<Tensor> operands =
                                    call.operands().stream().map(known::get).toList();
                            result.data()
                                    .copyFrom(Interpreter.results(call, operands)
                                            .get(x.index())
                                            .data());
                        }
                        default ->
                            Interpreter.evaluate(
                                    value.op(),
                                    value.op().operands().stream()
                                            .map(known::get)
                                            .toList(),
                                    result);
                    }
                    known.put(value, result);
                }
                Map<String, Tensor> outputs = new LinkedHashMap<>();
                c.graph().outputs().forEach((key, value) -> outputs.put(key, known.get(value)));
                Bits.assertSameBits(c.interpret(), outputs, c.graph().name());
            }
        }
    }

    @Test
    void expansionsKeepTheBits() {
        for (int seed = 0; seed < GRAPHS; seed++) {
            GraphCase c = RandomGraphs.of(seed, 20);
            GraphBuilder b = new GraphBuilder("expanded");
            Map<Value, Value> mapped = new HashMap<>();
            for (Value value : c.graph().values()) {
                Op op = Operands.replace(value.op(), mapped::get);
                mapped.put(value, MathExpansion.covers(op) ? MathExpansion.expand(b, op) : b.add(op));
            }
            c.graph().outputs().forEach((key, value) -> b.output(key, mapped.get(value)));
            Bits.assertSameBits(
                    c.interpret(),
                    Interpreter.run(b.build(), c.inputs(), c.weights()),
                    c.graph().name());
        }
    }

    /// Two independent interpreters: where fp32 and double agree on the operands, they agree on the result up to
    /// rounding.
    @Test
    void everyOpIsCloseToItsDoubleMeaning() {
        int compared = 0;
        for (int seed = 0; seed < GRAPHS; seed++) {
            GraphCase c = RandomGraphs.of(seed, 12);
            Map<Value, Tensor> known = new HashMap<>();
            for (Value value : c.graph().values()) {
                List<Tensor> operands =
                        value.op().operands().stream().map(known::get).toList();
                switch (value.op()) {
                    case Op.Input x -> known.put(value, c.inputs().get(x.name()));
                    case Op.Weight x -> known.put(value, c.weights().get(x.name()));
                    case Op.Result x -> {
                        Op.Composite call = (Op.Composite) x.composite().op();
                        List<Tensor> in =
                                call.operands().stream().map(known::get).toList();
                        known.put(value, Interpreter.results(call, in).get(x.index()));
                    }
                    default -> {
                        known.put(value, Interpreter.evaluate(value.op(), operands));
                        if (!(value.op() instanceof Op.Bitcast)) {
                            compareWithDouble(c, value, operands, known.get(value));
                            compared++;
                        }
                    }
                }
            }
        }
        assertThat(compared).isGreaterThan(2000);
    }

    private static void compareWithDouble(GraphCase c, Value value, List<Tensor> operands, Tensor got) {
        GraphBuilder b = new GraphBuilder("one");
        Map<Value, Value> inputs = new LinkedHashMap<>();
        Map<String, double[]> doubles = new HashMap<>();
        double size = 1;
        for (int i = 0; i < operands.size(); i++) {
            Value operand = value.op().operands().get(i);
            inputs.computeIfAbsent(operand, o -> b.input(o.toString(), o.type()));
            double[] x = DoubleInterpreter.doubles(operands.get(i));
            doubles.put(operand.toString(), x);
            for (double element : x) {
                if (!(Math.abs(element) < 1e3)) {
                    return; // overflow and NaN are compared elsewhere
                }
            }
        }
        b.output("y", b.add(Operands.replace(value.op(), inputs::get)));
        double[] expected = DoubleInterpreter.run(b.build(), doubles).get("y");
        if (value.dtype() != DType.F32) {
            assertThat(DoubleInterpreter.doubles(got))
                    .as("%s %s", c.graph().name(), value.op())
                    .isEqualTo(expected);
            return;
        }
        for (double element : expected) {
            size = Double.isFinite(element) ? Math.max(size, Math.abs(element)) : size;
        }
        for (int i = 0; i < expected.length; i++) {
            double error = Math.abs(got.getFloat(i) - expected[i]);
            boolean same = Double.compare(got.getFloat(i), expected[i]) == 0;
            boolean overflow = Math.abs(expected[i]) > Float.MAX_VALUE;
            if (!same && !overflow && !(error <= 1e-4 * size)) {
                throw new AssertionError(c.graph().name() + ": " + value + " = " + value.op() + " at " + i
                        + ": expected " + expected[i] + ", got " + got.getFloat(i));
            }
        }
    }
}
