package ingot.train;

import ingot.data.ImagePreparation;
import ingot.data.ImageSet;
import ingot.data.Sequences;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.CrossEntropy;
import ingot.nn.Gpt;
import ingot.nn.ImageClassifier;
import ingot.nn.Mlp;
import ingot.nn.Parameter;
import ingot.nn.Randomness;
import ingot.runtime.Executor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The networks behind the faces: graphs for a batch of rows, and how rows are written into their inputs.
///
/// Inputs are `x` and `targets` with the rows on axis 0, and `scale`.
sealed interface Architecture {
    /// A place in the order of training, which decides how an example is augmented.
    record Place(long seed, long epoch) {}

    /// All that is stored.
    List<Parameter> parameters();

    /// True if training passes have the input `key`.
    default boolean keyed() {
        return false;
    }

    /// The output `loss` is the sum over the rows of the loss times `scale`.
    Graph loss(Loss loss, int rows);

    /// The same while nothing is learned.
    default Graph evaluation(Loss loss, int rows) {
        return loss(loss, rows);
    }

    /// Input `x`, output `y`.
    Graph prediction(int rows);

    /// Terms of the mean that a row has.
    int terms(Loss loss);

    /// Numbers of a row of `x`, and of `y`; language models have none.
    int inputs();

    int outputs();

    /// Writes one example into a row of the inputs; with a place: for training.
    void write(Loss loss, Examples examples, int index, @Nullable Place place, Executor executor, int row);

    static Set<String> batched() {
        return Set.of("x", "targets");
    }

    record Perceptron(Mlp model) implements Architecture {
        @Override
        public List<Parameter> parameters() {
            return model.parameters();
        }

        @Override
        public Graph loss(Loss loss, int rows) {
            GraphBuilder b = new GraphBuilder("mlp");
            Value x = b.input("x", Type.f32(rows, inputs()));
            Value scale = b.input("scale", Type.f32());
            b.output(
                    "loss",
                    switch (loss) {
                        case CROSS_ENTROPY -> model.loss(b, x, b.input("targets", Type.i32(rows)), scale);
                        case MEAN_SQUARED_ERROR -> {
                            Value targets = b.input("targets", Type.f32(rows, outputs()));
                            Value difference = b.subtract(model.logits(b, x), targets);
                            Value perRow = b.sum(b.multiply(difference, difference), 1); // [rows]
                            yield b.sum(b.multiply(perRow, scale), 0);
                        }
                        case NEXT_TOKEN ->
                            throw new IngotException("model: the loss next-token needs a language model, got an mlp of "
                                    + model.sizes() + "; use Loss.CROSS_ENTROPY or Loss.MEAN_SQUARED_ERROR");
                    });
            return b.build();
        }

        @Override
        public Graph prediction(int rows) {
            GraphBuilder b = new GraphBuilder("mlp");
            b.output("y", model.logits(b, b.input("x", Type.f32(rows, inputs()))));
            return b.build();
        }

        @Override
        public int terms(Loss loss) {
            return loss == Loss.MEAN_SQUARED_ERROR ? outputs() : 1;
        }

        @Override
        public void write(Loss loss, Examples examples, int index, @Nullable Place place, Executor executor, int row) {
            MemorySegment targets = executor.input("targets");
            switch (examples) {
                case Examples.Classes(float[][] inputs, int[] classes)
                when loss == Loss.CROSS_ENTROPY -> {
                    if (classes[index] < 0 || classes[index] >= outputs()) {
                        throw new IngotException("examples: row " + index + " has the class " + classes[index]
                                + ", the model has " + outputs() + " outputs");
                    }
                    floats("inputs", inputs[index], executor.input("x"), row, inputs());
                    targets.setAtIndex(ValueLayout.JAVA_INT, row, classes[index]);
                }
                case Examples.Values(float[][] inputs, float[][] values)
                when loss == Loss.MEAN_SQUARED_ERROR -> {
                    floats("inputs", inputs[index], executor.input("x"), row, inputs());
                    floats("values", values[index], targets, row, outputs());
                }
                case Examples.Classes _, Examples.Values _, Examples.Text _, Examples.Pictures _ ->
                    throw mismatch(loss, examples);
            }
        }

        @Override
        public int inputs() {
            return model.sizes().getFirst();
        }

        @Override
        public int outputs() {
            return model.sizes().getLast();
        }
    }

    /// Rows are sequences as long as the context.
    record Language(Gpt model) implements Architecture {
        @Override
        public List<Parameter> parameters() {
            return model.parameters();
        }

        @Override
        public Graph loss(Loss loss, int rows) {
            if (loss != Loss.NEXT_TOKEN) {
                throw new IngotException("model: a language model has the loss next-token, got " + Section.kebab(loss));
            }
            GraphBuilder b = new GraphBuilder("gpt");
            Value x = b.input("x", Type.i32(rows, model.context()));
            Value targets = b.input("targets", Type.i32(rows, model.context()));
            b.output("loss", model.loss(b, x, targets, b.input("scale", Type.f32()), null));
            return b.build();
        }

        @Override
        public Graph prediction(int rows) {
            GraphBuilder b = new GraphBuilder("gpt");
            b.output("y", model.logits(b, b.input("x", Type.i32(rows, model.context())), null));
            return b.build();
        }

        @Override
        public int terms(Loss loss) {
            return model.context();
        }

        @Override
        public int inputs() {
            return 0;
        }

        @Override
        public int outputs() {
            return 0;
        }

        @Override
        public void write(Loss loss, Examples examples, int index, @Nullable Place place, Executor executor, int row) {
            if (!(examples instanceof Examples.Text(Sequences text))) {
                throw mismatch(loss, examples);
            }
            if (text.length() != model.context()) {
                throw new IngotException("examples: sequences of " + text.length() + " tokens, the model has a context"
                        + " of " + model.context());
            }
            long at = 4L * row * text.length();
            text.read(index, executor.input("x"), at, executor.input("targets"), at);
        }
    }

    /// Rows are images, channels first.
    record Pictures(ImageClassifier model) implements Architecture {
        @Override
        public List<Parameter> parameters() {
            return model.weights();
        }

        @Override
        public boolean keyed() {
            return model.drops();
        }

        @Override
        public Graph loss(Loss loss, int rows) {
            return loss(loss, rows, true);
        }

        @Override
        public Graph evaluation(Loss loss, int rows) {
            return loss(loss, rows, false);
        }

        private Graph loss(Loss loss, int rows, boolean learning) {
            if (loss != Loss.CROSS_ENTROPY) {
                throw new IngotException(
                        "model: an image classifier has the loss cross-entropy, got " + Section.kebab(loss));
            }
            GraphBuilder b = new GraphBuilder("images");
            Value x = pixels(b, rows);
            Value targets = b.input("targets", Type.i32(rows));
            Value scale = b.input("scale", Type.f32());
            Value logits = model.logits(b, x, learning && keyed() ? Randomness.input(b) : null, name -> learning);
            Value losses = CrossEntropy.crossEntropy(b, logits, targets);
            b.output("loss", b.sum(b.multiply(losses, scale), 0));
            return b.build();
        }

        @Override
        public Graph prediction(int rows) {
            GraphBuilder b = new GraphBuilder("images");
            b.output("y", model.logits(b, pixels(b, rows)));
            return b.build();
        }

        private Value pixels(GraphBuilder b, int rows) {
            return b.input("x", Type.f32(rows, model.channels(), model.imageSize(), model.imageSize()));
        }

        @Override
        public int terms(Loss loss) {
            return 1;
        }

        @Override
        public int inputs() {
            return model.channels() * model.imageSize() * model.imageSize();
        }

        @Override
        public int outputs() {
            return model.labels();
        }

        @Override
        public void write(Loss loss, Examples examples, int index, @Nullable Place place, Executor executor, int row) {
            if (!(examples instanceof Examples.Pictures(ImageSet images))) {
                throw mismatch(loss, examples);
            }
            ImagePreparation preparation = images.preparation();
            if (preparation.channels() != model.channels() || preparation.size() != model.imageSize()) {
                throw new IngotException("examples: images of " + preparation.channels() + " channels and size "
                        + preparation.size() + ", the model has " + model.channels() + " and " + model.imageSize());
            }
            int label = images.label(index);
            if (label >= outputs()) {
                throw new IngotException("examples: " + images.images().name(index) + " has the class "
                        + images.classes().get(label) + ", number " + label + "; the model has " + outputs()
                        + " outputs");
            }
            float[] numbers =
                    place == null ? images.numbers(index) : images.numbers(index, place.seed(), place.epoch());
            floats("images", numbers, executor.input("x"), row, inputs());
            executor.input("targets").setAtIndex(ValueLayout.JAVA_INT, row, label);
        }
    }

    /// Writes one row of `width` numbers.
    static void floats(String what, float[] values, MemorySegment into, int row, int width) {
        if (values.length != width) {
            throw new IngotException(
                    "examples: " + what + " of " + values.length + " numbers per row, the model has " + width);
        }
        MemorySegment.copy(values, 0, into, ValueLayout.JAVA_FLOAT, 4L * row * width, width);
    }

    private static IngotException mismatch(Loss loss, Examples examples) {
        String kind = switch (examples) {
            case Examples.Classes _ -> "classes";
            case Examples.Values _ -> "values";
            case Examples.Text _ -> "text";
            case Examples.Pictures _ -> "images";
        };
        return new IngotException("examples: " + kind + " do not fit the loss " + Section.kebab(loss));
    }
}
