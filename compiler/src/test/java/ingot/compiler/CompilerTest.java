package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.GptConfig;
import ingot.nn.Mlp;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CompilerTest {
    // ---- stages

    @Test
    void gptIsCutAtTheResidualStream() {
        Program program = program(GptSpec.gpt(GptSpec.small(3, 0), 8, 4, 2, false));
        assertThat(program.stages().stream().map(Program.Stage::name))
                .containsExactly(
                        "embedding", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "h.2.attn", "h.2.mlp", "head");
        assertThat(program.stages().stream().map(Program.Stage::signature).distinct())
                .as("equal layers share their code")
                .hasSize(4);
        assertThat(program.stages().get(1).weights())
                .containsExactly(
                        "transformer.h.0.ln_1.weight",
                        "transformer.h.0.ln_1.bias",
                        "transformer.h.0.attn.c_attn.weight",
                        "transformer.h.0.attn.c_attn.bias",
                        "transformer.h.0.attn.c_proj.weight",
                        "transformer.h.0.attn.c_proj.bias");
    }

    @Test
    void aTiedWeightIsReadTwiceAndOwnedOnce() {
        Program program = program(GptSpec.gpt(GptSpec.small(1, 0), 8, 2, 2, false));
        String table = "transformer.wte.weight";
        assertThat(program.stages().getFirst().owns()).contains(table);
        assertThat(program.stages().getLast().weights()).contains(table);
        assertThat(program.stages().getLast().owns()).doesNotContain(table);
        long owned = program.stages().stream()
                .mapToLong(stage -> stage.owns().size())
                .sum();
        assertThat(owned).isEqualTo(program.weights().size());
    }

    @Test
    void anMlpHasAStageForEachMatrix() {
        Program program = program(GptSpec.mlp(Mlp.of(5, 12, 9, 6), 4, 4, false));
        assertThat(program.stages()).hasSize(3);
        assertThat(program.stages())
                .allSatisfy(stage -> assertThat(stage.weights()).hasSize(2));
    }

    @Test
    void dropoutAndDifferentRowsDoNotBreakTheSharing() {
        Program program = program(GptSpec.gpt(GptSpec.small(3, 0.1), 8, 5, 2, true));
        assertThat(program.stages().stream().map(Program.Stage::signature).distinct())
                .hasSize(4);
        assertThat(program.constants()).as("streams").hasSize(10);
    }

    // ---- steps

    @Test
    void stepsAreLayerMajor() {
        Program program = program(GptSpec.mlp(Mlp.of(5, 12, 6), 4, 2, false));
        assertThat(Explain.outline(program).replaceAll("run × \\d+", "run")).isEqualTo("""
            load 0 layers.0
            update 0 layers.0
            run
            free 0 layers.0
            load 1 layers.1
            update 1 layers.1
            run
            reduce × 3
            store 1 layers.1
            free 1 layers.1
            load 0 layers.0
            run
            reduce × 2
            store 0 layers.0
            free 0 layers.0
            commit
            """);
    }

    @Test
    void frozenWeightsHaveNoGradient() {
        TrainingSpec all = GptSpec.mlp(Mlp.of(5, 12, 6), 4, 4, false);
        Set<String> names = program(all).weights().keySet();
        String frozen = names.iterator().next();
        TrainingSpec some = new TrainingSpec(
                all.lossGraph(), all.loss(), 4, 4, 1, all.batchedInputs(), Set.of(), false, Set.of(frozen));
        Program program = program(some);
        assertThat(program.stages()).noneMatch(stage -> stage.owns().contains(frozen));
        assertThat(program.steps().toString()).doesNotContain("Gradient[weight=" + frozen + "]");
        TrainingSpec wrong = new TrainingSpec(
                all.lossGraph(), all.loss(), 4, 4, 1, all.batchedInputs(), Set.of(), false, Set.of("fc9"));
        assertThatThrownBy(() -> program(wrong)).hasMessageContaining("the frozen weight fc9 is not in graph mlp");
        TrainingSpec nothing =
                new TrainingSpec(all.lossGraph(), all.loss(), 4, 4, 1, all.batchedInputs(), Set.of(), false, names);
        assertThatThrownBy(() -> program(nothing)).hasMessageContaining("nothing to train");
    }

    // ---- what cannot be divided

    @Test
    void microBatchesThatWouldChangeBits() {
        assertThatThrownBy(() -> GptSpec.mlp(Mlp.of(5, 6), 8, 3, false)).hasMessageContaining("a power of two");
        assertThatThrownBy(() -> new TrainingSpec(
                        rows -> new GraphBuilder("x").build(), "loss", 7, 7, 2, Set.of(), Set.of(), false, Set.of()))
                .hasMessageContaining("does not divide into shards of 2");
    }

    @Test
    void batchNormalisationNeedsTheWholeBatch() {
        IntFunction<ingot.ir.Graph> loss = rows -> {
            GraphBuilder b = new GraphBuilder("norm");
            Value x = b.matmul(b.input("x", Type.f32(rows, 3)), b.weight("w", Type.f32(3, 4)));
            Value mean = b.multiply(b.sum(x, 0), 1.0 / rows);
            Value centred = b.scope("norm", () -> b.subtract(x, mean));
            b.output("loss", b.sum(b.multiply(centred, centred), 0, 1));
            return b.build();
        };
        TrainingSpec divided = new TrainingSpec(loss, "loss", 4, 2, 1, Set.of("x"), Set.of(), false, Set.of());
        assertThatThrownBy(() -> program(divided))
                .hasMessageContaining("(norm)")
                .hasMessageContaining(
                        "couples the rows of a batch (batch normalisation?); use train.micro-batch = batch");
        ProgramTest.same(new TrainingSpec(loss, "loss", 4, 4, 1, Set.of("x"), Set.of(), false, Set.of()));
    }

    @Test
    void whatBelongsToCertainRowsMustBeBatched() {
        IntFunction<ingot.ir.Graph> position = rows -> {
            GraphBuilder b = new GraphBuilder("rows");
            Value y = b.matmul(b.input("x", Type.f32(rows, 3)), b.weight("w", Type.f32(3, 4)));
            b.output("loss", b.sum(b.multiply(y, b.iota(Type.f32(rows, 4), 0)), 0, 1));
            return b.build();
        };
        refused(position, "%3 : f32[2, 4]", "meets the rows of the batch on axis 0");
        IntFunction<ingot.ir.Graph> forgotten = rows -> {
            GraphBuilder b = new GraphBuilder("rows");
            Value y = b.matmul(b.input("x", Type.f32(rows, 3)), b.weight("w", Type.f32(3, 4)));
            b.output("loss", b.sum(b.multiply(y, b.input("target", Type.f32(rows, 4))), 0, 1));
            return b.build();
        };
        refused(forgotten, "Input[name=target", "make it a batched input");
        IntFunction<ingot.ir.Graph> keyless = rows -> {
            GraphBuilder b = new GraphBuilder("rows");
            Value y = b.matmul(b.input("x", Type.f32(rows, 3)), b.weight("w", Type.f32(3, 4)));
            Value dropped = ingot.nn.Activations.dropout(b, y, 0.5, ingot.nn.Randomness.input(b), rows);
            b.output("loss", b.sum(dropped, 0, 1));
            return b.build();
        };
        refused(keyless, "draws random bits", "needs a key with its first row");
    }

    private static void refused(IntFunction<ingot.ir.Graph> loss, String... messages) {
        TrainingSpec spec = new TrainingSpec(loss, "loss", 4, 2, 1, Set.of("x"), Set.of(), false, Set.of());
        assertThatThrownBy(() -> program(spec))
                .hasMessageContaining(messages[0])
                .hasMessageContaining(messages[1]);
    }

    @Test
    void regularisationOfWeightsAndUnusedWeights() {
        IntFunction<ingot.ir.Graph> loss = rows -> {
            GraphBuilder b = new GraphBuilder("ridge");
            Value w = b.weight("w", Type.f32(3, 4));
            b.weight("unused", Type.f32(2));
            Value decayed = b.weight("decayed", Type.f32(5));
            Value y = b.matmul(b.input("x", Type.f32(rows, 3)), w);
            Value ridge = b.add(b.sum(b.multiply(w, w), 0, 1), b.sum(b.multiply(decayed, decayed), 0));
            b.output("loss", b.add(b.sum(b.multiply(y, y), 0, 1), ridge));
            b.output("ridge", ridge);
            b.output("weight", w);
            b.output("y", y);
            b.output("count", b.reduce(ingot.ir.Op.ReduceKind.SUM, b.input("tokens", Type.i32(rows)), 0));
            return b.build();
        };
        for (int micro : new int[] {1, 2, 5}) {
            ProgramTest.same(
                    new TrainingSpec(loss, "loss", 5, micro, 1, Set.of("x", "tokens"), Set.of(), false, Set.of()));
        }
    }

    // ---- inference and updates

    @Test
    void inferenceRunsStageByStage() {
        GptConfig config = GptSpec.small(2, 0);
        GraphBuilder b = new GraphBuilder("logits");
        b.output("logits", ingot.nn.Gpt.of(config).logits(b, b.input("tokens", Type.i32(2, 8)), null));
        ingot.ir.Graph graph = b.build();
        Program program = Compiler.inference(graph);
        assertThat(program.stages()).hasSize(6);
        assertThat(program.memory().gradientBytes()).isZero();
        Random random = new Random(5);
        Map<String, Tensor> weights = new java.util.HashMap<>();
        program.weights().forEach((name, type) -> weights.put(name, ProgramTest.random(type, random, 1)));
        Map<String, Tensor> inputs = Map.of("tokens", ProgramTest.random(Type.i32(2, 8), random, 37));
        Tensor found = TinyExecutor.run(program, new ReferenceBackend(), inputs, weights)
                .get("logits");
        assertThat(found.sameBits(Interpreter.run(graph, inputs, weights).get("logits")))
                .isTrue();
    }

    /// m ← βm + g, w ← w − m; and a reversal, which must not read what it has overwritten.
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void updatesWorkInPlace(boolean shared) {
        GraphBuilder b = new GraphBuilder("update");
        Type type = Type.f32(100);
        Value w = b.input("w", type);
        Value m = b.input("m", type);
        Value g = b.input("g", type);
        Value next = b.add(b.multiply(m, 0.9), g);
        b.output("m", next);
        b.output("w", b.subtract(w, next));
        b.output("g", b.add(new ingot.ir.Op.Reverse(b.add(g, m), List.of(0))));
        ingot.ir.Graph graph = b.build();
        Program program = Compiler.update(graph, Map.of("m", "m", "w", "w", "g", "g"));
        Random random = new Random(9);
        Map<String, Tensor> inputs = Map.of(
                "w", ProgramTest.random(type, random, 1),
                "m", ProgramTest.random(type, random, 1),
                "g", ProgramTest.random(type, random, 1));
        TinyExecutor executor = new TinyExecutor(program, new ReferenceBackend());
        if (shared) {
            for (String name : inputs.keySet()) {
                MemorySegment memory = Arena.ofAuto().allocate(type.bytes(), 64);
                executor.bind(new Buffer.Input(name), memory);
                executor.bind(new Buffer.Output(name), memory);
            }
        }
        Map<String, Tensor> expected = Interpreter.run(graph, inputs, Map.of());
        executor.run(inputs, Map.of())
                .forEach((name, tensor) ->
                        assertThat(tensor.sameBits(expected.get(name))).as(name).isTrue());
    }

    @Test
    void inPlaceNamesMustExist() {
        GraphBuilder b = new GraphBuilder("update");
        b.output("w", b.negate(b.input("w", Type.f32(3))));
        assertThatThrownBy(() -> Compiler.update(b.build(), Map.of("w", "v")))
                .hasMessageContaining("in place: w over v");
    }

    @Test
    void outputsMayBeInputsOrConstants() {
        GraphBuilder b = new GraphBuilder("outputs");
        Value x = b.input("x", Type.f32(2, 3));
        b.output("same", x);
        b.output("view", b.reshape(x, 6));
        b.output("again", b.reshape(x, 6));
        b.output("one", b.fullLike(x, 1));
        b.output("table", b.constant(Tensor.of(Shape.of(2), 1f, 2f)));
        b.output("exp", b.exp(x));
        b.output("exp2", b.exp(x));
        ingot.ir.Graph graph = b.build();
        Map<String, Tensor> inputs = Map.of("x", ProgramTest.random(Type.f32(2, 3), new Random(1), 1));
        Map<String, Tensor> expected = Interpreter.run(graph, inputs, Map.of());
        TinyExecutor.run(Compiler.inference(graph), new ReferenceBackend(), inputs, Map.of())
                .forEach((name, tensor) ->
                        assertThat(tensor.sameBits(expected.get(name))).as(name).isTrue());
    }

    // ---- watching

    @Test
    void summariesCountTheWork() {
        Program program = program(GptSpec.mlp(Mlp.of(5, 12, 6), 4, 4, false));
        // forward, and twice backward without the gradient of the input
        double products = 2 * 4 * (5 * 12 * 2 + 12 * 6 * 3);
        double counted = program.steps().stream()
                .mapToDouble(step -> step instanceof Step.Run(Kernel.Matmul dot, var _) ? Explain.flops(dot) : 0)
                .sum();
        assertThat(counted).isEqualTo(products);
        assertThat(Explain.flops(program)).isGreaterThan(products);
        assertThat(Explain.summary(program))
                .contains("program mlp: 2 stages, 2 distinct", "0 layers.0", "matmul", "activations");
    }

    @Test
    void listingsNameBuffers() {
        Program program = program(GptSpec.mlp(Mlp.of(5, 6), 4, 4, false));
        assertThat(Explain.program(program))
                .contains("load 0 layers.0", "= matmul input x f32[4, 5], weight layers.0.weight f32[", "commit")
                .contains("gradient layers.0.weight f32[6, 5]")
                .contains("output loss");
    }

    @Test
    void debugTopicsPrint() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        Debug debug =
                Debug.of("graph,passes kernels,program,time", new PrintStream(bytes, true, StandardCharsets.UTF_8));
        new Compiler(Compiler.Options.DEFAULT, debug, Lowering::lower)
                .trainingProgram(GptSpec.mlp(Mlp.of(5, 6), 4, 4, false));
        assertThat(bytes.toString(StandardCharsets.UTF_8))
                .contains("---- loss for a batch of 4", "---- InlineComposites", "---- kernels of", "---- program mlp")
                .contains(" ms  schedule");
    }

    private static Program program(TrainingSpec spec) {
        return ProgramTest.compile(spec);
    }
}
