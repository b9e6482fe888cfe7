package ingot.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TextFormTest {
    @Test
    void everyOpIsInTheTestGraph() {
        Set<Class<?>> used = EveryOp.graph().values().stream()
                .map(value -> value.op().getClass())
                .collect(Collectors.toSet());
        assertThat(used).isEqualTo(new HashSet<>(List.of(Op.class.getPermittedSubclasses())));
    }

    @Test
    void parsesWhatItPrints() {
        Graph graph = EveryOp.graph();
        String text = TextForm.print(graph, true);
        Graph parsed = TextForm.parse(text, List.of(EveryOp.TWICE));
        assertThat(TextForm.print(parsed, true)).isEqualTo(text);
        assertThat(parsed).isEqualTo(graph);
        assertThat(parsed.values().stream().map(Value::op).toList())
                .isEqualTo(graph.values().stream().map(Value::op).toList());
        for (Value value : graph.values()) {
            assertThat(parsed.scope(value)).isEqualTo(graph.scope(value));
        }
        Verifier.check(parsed);
    }

    @Test
    void isReadable() {
        GraphBuilder b = new GraphBuilder("step");
        Value x = b.input("x", Type.f32(4, 8));
        Value half = b.scope("h.0", () -> b.multiply(x, 0.5));
        b.output("loss", b.sum(half, 0, 1));
        b.output("p", b.call(Function.of("square", square()), List.of(x)).getFirst());
        assertThat(TextForm.print(b.build(), true)).isEqualTo("""
            function 0 square {
              %0 : f32[4, 8] = input 0
              %1 : f32[4, 8] = multiply %0 %0
              output y = %1
            }

            graph step {
              %0 : f32[4, 8] = input x
              %1 : f32[] = constant 0.5  // h.0
              %2 : f32[4, 8] = broadcast %1 axes=[]  // h.0
              %3 : f32[4, 8] = multiply %0 %2  // h.0
              %4 : f32[] = reduce_sum %3 axes=[0, 1]
              %5 : f32[4, 8] = call square#0 %0
              output loss = %4
              output p = %5
            }
            """);
    }

    @Test
    void equalFunctionsAreWrittenOnce() {
        GraphBuilder b = new GraphBuilder("g");
        Value x = b.input("x", Type.f32(4, 8));
        Value y = b.call(Function.of("square", square()), List.of(x)).getFirst();
        b.output("z", b.call(Function.of("square", square()), List.of(y)).getFirst());
        assertThat(TextForm.print(b.build()).lines().filter(line -> line.startsWith("function")))
                .hasSize(1);
    }

    @Test
    void scopesDoNotMakeGraphsDifferent() {
        GraphBuilder a = new GraphBuilder("g");
        a.output("y", a.scope("h.0", () -> a.exp(a.input("x", Type.f32(2)))));
        GraphBuilder b = new GraphBuilder("g");
        b.output("y", b.scope("h.1", () -> b.exp(b.input("x", Type.f32(2)))));
        assertThat(a.build()).isEqualTo(b.build());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "%0 : f32[2] = exq %9                 | line 2: %9 is not defined above",
                "%0 : f32[2] = frobnicate             | line 2: frobnicate has 1 operands, got 0",
                "%0 : f33[2] = input x                | line 2: unknown type f33",
                "%1 : f32[2] = input x                | expected %1 and no op twice, got %1",
                "%0 : f32[2] = constant {1.0}         | expected ,",
                "%0 : f32[2] = constant 1.0           | needs 2 elements in braces",
                "%0 : i32[] = constant 1.5            | 1.5 is no i32",
                "%0 : bool[] = constant 1             | expected true or false, got 1",
                "%0 : f32[2, 3] = iota                | expected axis=",
                "%0 : f32[2, 3] = iota axis=2         | iota: axis 2 is outside of [2, 3]",
                "%0 : f32[2, 3] = iota axis=1 size=3  | unknown attributes [size]",
                "%0 : f32[2] = input x y              | unexpected",
                "%0 : f32[2] = custom twice           | custom op twice is not given to the parser",
                "%0 : f32[2] = call f#0               | function 0 is not defined above",
                "output y = %0                        | %0 is not defined above",
                "%0 : f32[3] = constant base64 AAAA   | needs 12 bytes, got 3",
            })
    void namesTheLineOfAnError(String line, String message) {
        assertThatThrownBy(() -> TextForm.parse("graph g {\n" + line + "\n}\n"))
                .isInstanceOf(IngotException.class)
                .hasMessageStartingWith("text form, line ")
                .hasMessageContaining(message);
    }

    @Test
    void rejectsWrongTypes() {
        String text = "graph g {\n%0 : f32[2] = input x\n%1 : f32[3] = exp %0\noutput y = %1\n}";
        assertThatThrownBy(() -> TextForm.parse(text))
                .hasMessage("text form, line 3: %1 is said to be f32[3], its op gives f32[2]");
        assertThatThrownBy(() -> TextForm.parse("graph g {\n%0 : f32[2] = input x\n"))
                .hasMessageContaining("ends too early");
        assertThatThrownBy(() -> TextForm.parse("graph g {\n}\nmore")).hasMessageContaining("nothing may follow");
    }

    @Test
    void namesOfEveryKindSurvive() {
        for (String name :
                Stream.of("x", "a b", "\"", "\\", "zeile\n2", "ü→", "#1", "").toList()) {
            GraphBuilder b = new GraphBuilder(name);
            b.output(name, b.input("in" + name, Type.f32()));
            Graph parsed = TextForm.parse(TextForm.print(b.build()));
            assertThat(parsed.name()).isEqualTo(name);
            assertThat(parsed.outputs().keySet()).containsExactly(name);
            assertThat(parsed.values().getFirst().op()).isEqualTo(new Op.Input("in" + name, Type.f32()));
        }
    }

    private static Graph square() {
        GraphBuilder b = new GraphBuilder("square");
        Value x = b.input("0", Type.f32(4, 8));
        b.output("y", b.multiply(x, x));
        return b.build();
    }
}
