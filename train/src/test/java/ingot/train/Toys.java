package ingot.train;

import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Mlp;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.Set;

/// Small tasks whose data is a pure function of (step, row).
final class Toys {
    private static final int CLASSES = 3;
    private static final int INPUTS = 4;

    private Toys() {}

    /// Which of the first three numbers is the largest? A perceptron of one hidden layer.
    static Task largest(int batch) {
        Mlp model = Mlp.of(INPUTS, 16, CLASSES);
        return new Task(
                model.parameters(),
                rows -> {
                    GraphBuilder b = new GraphBuilder("largest");
                    Value x = b.input("x", Type.f32(rows, INPUTS));
                    Value targets = b.input("targets", Type.i32(rows));
                    b.output("loss", model.loss(b, x, targets, b.input("scale", Type.f32())));
                    return b.build();
                },
                Set.of("x", "targets"),
                false,
                (step, executor) -> {
                    MemorySegment x = executor.input("x");
                    MemorySegment targets = executor.input("targets");
                    Random random = new Random(step);
                    for (int row = 0; row < batch; row++) {
                        int best = 0;
                        float[] values = new float[INPUTS];
                        for (int i = 0; i < INPUTS; i++) {
                            values[i] = 2 * random.nextFloat() - 1;
                            best = i < CLASSES && values[i] > values[best] ? i : best;
                            x.setAtIndex(ValueLayout.JAVA_FLOAT, (long) row * INPUTS + i, values[i]);
                        }
                        targets.setAtIndex(ValueLayout.JAVA_INT, row, best);
                    }
                    executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / batch);
                    return batch;
                });
    }

    /// Two layers over an alphabet of 24 letters, with the given dropout.
    static Task letters(int batch, int time, double dropout) {
        return tokens(Gpt.of(GptConfig.of(24, time, 16, 2, 2).withDropout(dropout)), batch, time, dropout);
    }

    /// A model most of whose weights are its vocabulary.
    static Task words(int vocabulary, int batch, int time) {
        return tokens(Gpt.of(GptConfig.of(vocabulary, time, 32, 2, 2)), batch, time, 0);
    }

    private static Task tokens(Gpt model, int batch, int time, double dropout) {
        int n = model.vocabulary();
        return new Task(
                model.parameters(),
                rows -> model.lossGraph(rows, time, dropout > 0),
                Set.of("tokens", "targets"),
                dropout > 0,
                (step, executor) -> {
                    for (int row = 0; row < batch; row++) {
                        for (int t = 0; t < time; t++) {
                            long at = (long) row * time + t;
                            int letter = (int) ((step * 7 + row * 5 + t * (long) t) * (n / 24) % n);
                            executor.input("tokens").setAtIndex(ValueLayout.JAVA_INT, at, letter);
                            executor.input("targets").setAtIndex(ValueLayout.JAVA_INT, at, (letter * 5 + 3) % n);
                        }
                    }
                    executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / (batch * time));
                    return (long) batch * time;
                });
    }
}
