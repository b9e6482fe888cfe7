package ingot.peers;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.training.GradientCollector;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.training.tracker.Tracker;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// Trains a GPT-2 shaped model with libtorch through DJL, one step per line on standard input.
///
/// Arguments: vocabulary layers width heads batch time. Prints `ready`, then for every line read the nanoseconds of one
/// training step (forward, backward, AdamW) and its loss. Fused operators are used wherever DJL offers them.
public final class LibtorchGpt {
    private final int heads;
    private final int width;
    private final NDManager manager;
    private final NDArray mask; // [time, time], −∞ above the diagonal
    private final List<NDArray> weights = new ArrayList<>();
    private final Optimizer optimizer = Optimizer.adamW()
            .optLearningRateTracker(Tracker.fixed(1e-3f))
            .optWeightDecays(0.01f)
            .build();

    private LibtorchGpt(NDManager manager, int vocabulary, int layers, int width, int heads, int time) {
        this.manager = manager;
        this.heads = heads;
        this.width = width;
        float[] above = new float[time * time];
        for (int i = 0; i < time; i++) {
            Arrays.fill(above, i * time + i + 1, (i + 1) * time, Float.NEGATIVE_INFINITY);
        }
        mask = manager.create(above, new Shape(time, time));
        normal(vocabulary, width);
        normal(time, width);
        for (int i = 0; i < layers; i++) {
            norm();
            normal(3 * width, width);
            zeros(3 * width);
            normal(width, width);
            zeros(width);
            norm();
            normal(4 * width, width);
            zeros(4 * width);
            normal(width, 4 * width);
            zeros(width);
        }
        norm();
        weights.forEach(weight -> weight.setRequiresGradient(true));
    }

    public static void main(String[] arguments) throws IOException {
        int[] sizes = new int[6];
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = Integer.parseInt(arguments[i]);
        }
        int vocabulary = sizes[0];
        int batch = sizes[4];
        int time = sizes[5];
        try (NDManager manager = NDManager.newBaseManager(Device.cpu())) {
            LibtorchGpt model = new LibtorchGpt(manager, vocabulary, sizes[1], sizes[2], sizes[3], time);
            NDArray tokens = manager.randomInteger(0, vocabulary, new Shape(batch, time), DataType.INT64);
            NDArray targets = manager.randomInteger(0, vocabulary, new Shape(batch * (long) time, 1), DataType.INT64);
            System.out.println("ready");
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            while (in.readLine() != null) {
                long start = System.nanoTime();
                float loss = model.step(tokens, targets);
                System.out.println(System.nanoTime() - start + " " + loss);
            }
        }
    }

    private float step(NDArray tokens, NDArray targets) {
        try (NDManager scratch = manager.newSubManager()) {
            NDArray ids = tokens.duplicate();
            NDArray labels = targets.duplicate();
            ids.attach(scratch);
            labels.attach(scratch);
            float value;
            try (GradientCollector collector = Engine.getInstance().newGradientCollector()) {
                NDArray loss = loss(ids, labels);
                loss.attach(scratch);
                collector.backward(loss);
                value = loss.getFloat();
            }
            for (int i = 0; i < weights.size(); i++) {
                NDArray gradient = weights.get(i).getGradient();
                optimizer.update(Integer.toString(i), weights.get(i), gradient);
                gradient.close();
            }
            return value;
        }
    }

    /// Mean cross entropy of the next tokens. Results live as long as the step: they attach to the manager of `ids`.
    private NDArray loss(NDArray ids, NDArray labels) {
        long batch = ids.getShape().get(0);
        long time = ids.getShape().get(1);
        NDArray table = weights.get(0);
        NDArray x = ids.getNDArrayInternal()
                .embedding(ids, table, SparseFormat.DENSE)
                .singletonOrThrow()
                .add(weights.get(1));
        int at = 2;
        while (at + 2 < weights.size()) {
            NDArray qkv = linear(norm(x, at), at + 2)
                    .reshape(batch, time, 3, heads, width / heads)
                    .transpose(2, 0, 3, 1, 4);
            NDArray scores = qkv.get(0)
                    .matMul(qkv.get(1).transpose(0, 1, 3, 2))
                    .mul(1 / (float) Math.sqrt(width / (double) heads))
                    .add(mask);
            NDArray mixed =
                    scores.softmax(-1).matMul(qkv.get(2)).transpose(0, 2, 1, 3).reshape(batch, time, width);
            x = x.add(linear(mixed, at + 4));
            NDArray inner = linear(norm(x, at + 6), at + 8).getNDArrayInternal().gelu();
            x = x.add(linear(inner, at + 10));
            at += 12;
        }
        NDArray hidden = norm(x, at).reshape(batch * time, width);
        NDArray logits = hidden.getNDArrayInternal().linear(hidden, table, null).singletonOrThrow();
        return logits.logSoftmax(1).gather(labels, 1).neg().mean();
    }

    private NDArray norm(NDArray x, int at) {
        return x.getNDArrayInternal()
                .layerNorm(x, new Shape(width), weights.get(at), weights.get(at + 1), 1e-5f)
                .singletonOrThrow();
    }

    private NDArray linear(NDArray x, int at) {
        return x.getNDArrayInternal()
                .linear(x, weights.get(at), weights.get(at + 1))
                .singletonOrThrow();
    }

    private void norm() {
        weights.add(manager.ones(new Shape(width)));
        zeros(width);
    }

    private void zeros(long... shape) {
        weights.add(manager.zeros(new Shape(shape)));
    }

    private void normal(long... shape) {
        weights.add(manager.randomNormal(0, 0.02f, new Shape(shape), DataType.FLOAT32));
    }
}
