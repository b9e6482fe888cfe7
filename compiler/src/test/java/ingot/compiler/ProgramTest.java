package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Mlp;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.SequencedMap;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// A program gives the bits of the interpreter on the whole differentiated graph, however it is divided.
class ProgramTest {
    private static final Backend BACKEND = new ReferenceBackend();

    @ParameterizedTest
    @CsvSource({
        "4, 4, false",
        "4, 2, false",
        "4, 1, true",
        "7, 7, true",
        "7, 4, false",
        "7, 2, true",
        "7, 1, false",
        "1, 1, false"
    })
    void gpt(int batch, int microBatch, boolean recompute) {
        same(GptSpec.gpt(GptSpec.small(2, 0), 8, batch, microBatch, recompute));
    }

    @ParameterizedTest
    @CsvSource({"4, 4, true", "5, 2, false", "5, 1, true"})
    void gptWithDropout(int batch, int microBatch, boolean recompute) {
        same(GptSpec.gpt(GptSpec.small(2, 0.2), 8, batch, microBatch, recompute));
    }

    @ParameterizedTest
    @CsvSource({"8, 8, false", "8, 2, true", "7, 4, false", "3, 1, false"})
    void mlp(int batch, int microBatch, boolean recompute) {
        same(GptSpec.mlp(Mlp.of(5, 12, 9, 6), batch, microBatch, recompute));
    }

    /// Sequences share a chain in shards of two.
    @ParameterizedTest
    @CsvSource({"8, 8", "8, 2", "6, 4"})
    void shards(int batch, int microBatch) {
        TrainingSpec one = GptSpec.gpt(GptSpec.small(1, 0), 8, batch, batch, false);
        same(new TrainingSpec(
                one.lossGraph(),
                one.loss(),
                batch,
                microBatch,
                2,
                one.batchedInputs(),
                one.perMicroBatchInputs(),
                false,
                Set.of()));
    }

    /// The head in blocks of one shard.
    @ParameterizedTest
    @CsvSource({"4, 4", "7, 4", "5, 5"})
    void tiledLogits(int batch, int microBatch) {
        TrainingSpec spec = GptSpec.gpt(GptSpec.small(1, 0), 8, batch, microBatch, false);
        Compiler.Options tiled = Compiler.Options.DEFAULT.withLogitBytes(8 * 37 * 4);
        same(spec, tiled);
        assertThat(compile(spec, tiled).steps())
                .noneMatch(step -> step instanceof Step.Run(Kernel.Matmul dot, var _)
                        && dot.c().shape().elements() > 8 * 37
                        && dot.c().shape().dim(-1) == 37);
    }

    /// What lies between forward and backward waits in a file, and its memory serves others.
    @ParameterizedTest
    @CsvSource({"4, 4, true", "4, 1, true", "7, 2, false"})
    void spills(int batch, int microBatch, boolean recompute) {
        TrainingSpec spec = GptSpec.gpt(GptSpec.small(4, 0.1), 8, batch, microBatch, recompute);
        Compiler.Options spilling = Compiler.Options.DEFAULT.withSpillBytes(512);
        same(spec, spilling);
        same(spec, spilling.withSpillAhead(true));
        Program kept = compile(spec, Compiler.Options.DEFAULT);
        Program spilled = compile(spec, spilling);
        assertThat(kept.memory().spillBytes()).isZero();
        assertThat(spilled.memory().spillBytes()).isPositive().matches(bytes -> bytes % 4096 == 0, "whole pages");
        assertThat(count(spilled, Step.Spill.class))
                .isEqualTo(count(spilled, Step.Fetch.class))
                .isPositive();
    }

    /// Every matrix and the vocabulary in tiles, each with a stage of its own.
    @ParameterizedTest
    @CsvSource({"4, 4, false", "4, 1, true", "7, 2, true"})
    void tiledWeights(int batch, int microBatch, boolean recompute) {
        TrainingSpec spec = GptSpec.gpt(GptSpec.small(2, 0.1), 8, batch, microBatch, recompute);
        Compiler.Options tiled = Compiler.Options.DEFAULT.withTiles(4 * 64, 16);
        same(spec, tiled);
        Program program = compile(spec, tiled);
        assertThat(program.weights().entrySet())
                .allMatch(weight -> weight.getValue().shape().rank() < 2
                        || weight.getValue().shape().elements() <= 64
                        || weight.getKey().contains("wpe"));
        assertThat(program.stages())
                .allMatch(stage -> stage.weights().stream()
                                .filter(program.tiles()::containsKey)
                                .count()
                        <= 1);
        assertThat(program.tiles().values().stream().map(Program.Tile::weight).distinct())
                .contains(
                        "transformer.wte.weight",
                        "transformer.h.0.attn.c_attn.weight",
                        "transformer.h.1.mlp.c_proj.weight");
    }

    @Test
    void tilesOfWeightsThatKeepTheirRows() {
        TrainingSpec spec = GptSpec.mlp(Mlp.of(5, 12, 9, 6), 6, 2, true);
        same(spec, Compiler.Options.DEFAULT.withTiles(4 * 20, 4));
        same(spec, Compiler.Options.DEFAULT.withTiles(4 * 20, 4).withSpillBytes(64));
    }

    private static long count(Program program, Class<? extends Step> kind) {
        return program.steps().stream().filter(kind::isInstance).count();
    }

    static void same(TrainingSpec spec) {
        same(spec, Compiler.Options.DEFAULT);
    }

    private static void same(TrainingSpec spec, Compiler.Options options) {
        MicroGraph whole = MicroGraph.training(spec, spec.batch(), true, Debug.SILENT);
        Random random = new Random(1);
        Map<String, Tensor> weights = new HashMap<>();
        for (Value value : whole.graph().weights()) {
            weights.put(((Op.Weight) value.op()).name(), random(value.type(), random, 1));
        }
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        for (Value value : whole.graph().inputs()) {
            inputs.put(((Op.Input) value.op()).name(), random(value.type(), random, classes(whole.graph())));
        }
        if (inputs.containsKey("key")) {
            inputs.put("key", Tensor.of(Shape.of(4), 11, 12, 13, 0));
        }
        Map<String, Tensor> expected = Interpreter.run(whole.graph(), inputs, weights);

        Program program = compile(spec, options);
        if (inputs.containsKey("key")) {
            int[] keys = new int[4 * spec.microBatches()];
            for (int i = 0; i < spec.microBatches(); i++) {
                keys[4 * i] = 11;
                keys[4 * i + 1] = 12;
                keys[4 * i + 2] = 13;
                keys[4 * i + 3] = i * spec.microBatch();
            }
            inputs.put("key", Tensor.of(Shape.of(spec.microBatches(), 4), keys));
        }
        SequencedMap<String, Tensor> found = TinyExecutor.run(program, BACKEND, inputs, weights);
        assertThat(found.keySet()).isEqualTo(Set.copyOf(expected.keySet()));
        found.forEach((name, tensor) -> assertThat(tensor.sameBits(expected.get(name)))
                .as("%s: %s, expected %s", name, tensor, expected.get(name))
                .isTrue());
    }

    /// Tokens and classes are within what the model knows.
    private static int classes(Graph graph) {
        return graph.weights().stream()
                .filter(value -> ((Op.Weight) value.op()).name().endsWith("wte.weight"))
                .mapToInt(value -> value.shape().dim(0))
                .findFirst()
                .orElse(6);
    }

    static Program compile(TrainingSpec spec) {
        return compile(spec, Compiler.Options.DEFAULT);
    }

    private static Program compile(TrainingSpec spec, Compiler.Options options) {
        return new Compiler(options, Debug.SILENT, Lowering::lower).trainingProgram(spec);
    }

    static Tensor random(Type type, Random random, int limit) {
        Tensor tensor = Tensor.zeros(type);
        for (int i = 0; i < type.shape().elements(); i++) {
            if (type.dtype() == DType.F32) {
                tensor.setFloat(i, (float) random.nextGaussian());
            } else {
                tensor.setLong(i, random.nextInt(limit));
            }
        }
        return tensor;
    }
}
