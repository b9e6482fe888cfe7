package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Activation;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Mlp;
import ingot.nn.Randomness;
import java.util.Set;

/// Training steps to try the compiler on.
final class GptSpec {
    private GptSpec() {}

    static TrainingSpec gpt(GptConfig config, int time, int batch, int microBatch, boolean recompute) {
        return new TrainingSpec(
                rows -> gptLoss(config, time, rows),
                "loss",
                batch,
                microBatch,
                1,
                Set.of("tokens", "targets"),
                Set.of("key"),
                recompute,
                Set.of());
    }

    private static Graph gptLoss(GptConfig config, int time, int rows) {
        GraphBuilder b = new GraphBuilder("gpt");
        Value tokens = b.input("tokens", Type.i32(rows, time));
        Value targets = b.input("targets", Type.i32(rows, time));
        Value scale = b.input("scale", Type.f32());
        Randomness random = config.residualDropout() > 0 ? Randomness.input(b) : null;
        b.output("loss", Gpt.of(config).loss(b, tokens, targets, scale, random));
        return b.build();
    }

    static TrainingSpec mlp(Mlp mlp, int batch, int microBatch, boolean recompute) {
        return new TrainingSpec(
                rows -> {
                    GraphBuilder b = new GraphBuilder("mlp");
                    Value x = b.input("x", Type.f32(rows, mlp.sizes().getFirst()));
                    Value targets = b.input("targets", Type.i32(rows));
                    Value scale = b.input("scale", Type.f32());
                    b.output("logits", mlp.logits(b, x));
                    b.output("loss", mlp.loss(b, x, targets, scale));
                    return b.build();
                },
                "loss",
                batch,
                microBatch,
                1,
                Set.of("x", "targets"),
                Set.of(),
                recompute,
                Set.of());
    }

    static GptConfig small(int layers, double dropout) {
        return new GptConfig(37, 8, 16, layers, 2, 32, dropout, dropout, dropout, 1e-5, Activation.GELU_TANH, 0.2);
    }
}
