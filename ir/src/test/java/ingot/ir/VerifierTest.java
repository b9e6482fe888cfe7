package ingot.ir;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class VerifierTest {
    private final Value x = new Value(0, new Op.Input("x", Type.f32(2)), Type.f32(2));

    @Test
    void acceptsEveryOp() {
        Verifier.check(EveryOp.graph());
    }

    @Test
    void wrongType() {
        Value y = new Value(1, new Op.Unary(Op.UnaryKind.EXP, x), Type.f32(3));
        rejects("graph g: %1 (h.0.mlp): expected f32[2], got f32[3]", y, x, y);
    }

    @Test
    void wrongOrder() {
        Value y = new Value(0, new Op.Unary(Op.UnaryKind.EXP, new Value(1, x.op(), x.type())), Type.f32(2));
        rejects("operand %1 is not defined before", y, y, new Value(1, x.op(), x.type()));
    }

    @Test
    void wrongId() {
        Value y = new Value(2, new Op.Unary(Op.UnaryKind.EXP, x), Type.f32(2));
        rejects("%2: expected id %1", x, x, y);
    }

    @Test
    void foreignOperand() {
        Value foreign = new Value(0, new Op.Input("z", Type.f32(2)), Type.f32(2));
        Value y = new Value(1, new Op.Unary(Op.UnaryKind.EXP, foreign), Type.f32(2));
        rejects("operand %0 : f32[2] belongs to another graph", y, x, y);
    }

    @Test
    void operandsThatDoNotFit() {
        Value z = new Value(1, new Op.Input("z", Type.f32(3)), Type.f32(3));
        Value y = new Value(2, new Op.Binary(Op.BinaryKind.ADD, x, z), Type.f32(2));
        rejects("add: types differ, f32[2] and f32[3]", y, x, z, y);
    }

    @Test
    void namesAndOpsTwice() {
        Value again = new Value(1, new Op.Weight("x", Type.f32(2)), Type.f32(2));
        rejects("the name x is declared twice", x, x, again);
        Value y = new Value(1, new Op.Unary(Op.UnaryKind.EXP, x), Type.f32(2));
        Value z = new Value(2, new Op.Unary(Op.UnaryKind.EXP, x), Type.f32(2));
        rejects("%2: the op is there already", y, x, y, z);
    }

    @Test
    void outputs() {
        rejects("graph g: output y = %7 : f32[2] is not in the graph", new Value(7, x.op(), x.type()), x);
        Graph none = new Graph("g", List.of(x), new LinkedHashMap<>(), Map.of());
        assertThatThrownBy(() -> Verifier.check(none)).hasMessage("graph g: no outputs");
    }

    @Test
    void definitions() {
        GraphBuilder d = new GraphBuilder("d");
        d.output("y", d.input("x", Type.f32(2)));
        rejectsCallOf(Function.of("f", d.build()), "function f: input 0 expected the name 0, got x");

        GraphBuilder good = new GraphBuilder("d");
        good.output("y", good.exp(good.input("0", Type.f32(2))));
        GraphBuilder g = new GraphBuilder("g");
        g.output("dx", g.input("0", Type.f32(2)));
        rejectsCallOf(
                new Function("f", new TreeMap<>(), good.build(), Function.of("df", g.build())),
                "its gradient df expected (operands, results, cotangents) [f32[2], f32[2], f32[2]], got [f32[2]]");
    }

    private static void rejectsCallOf(Function function, String message) {
        GraphBuilder b = new GraphBuilder("g");
        b.output("y", b.call(function, List.of(b.input("x", Type.f32(2)))).getFirst());
        assertThatThrownBy(() -> Verifier.check(b.build()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(message);
    }

    private static void rejects(String message, Value output, Value... values) {
        LinkedHashMap<String, Value> outputs = new LinkedHashMap<>();
        outputs.put("y", output);
        Graph graph = new Graph("g", List.of(values), outputs, Map.of(1, "h.0.mlp"));
        assertThatThrownBy(() -> Verifier.check(graph))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(message);
    }
}
