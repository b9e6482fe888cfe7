package ingot.train;

import ingot.data.ImageSet;
import ingot.data.Sequences;
import ingot.ir.IngotException;

/// What a model learns from, row by row.
public sealed interface Examples {
    /// How many rows there are.
    int count();

    /// Rows of numbers with the class of each.
    static Examples of(float[][] inputs, int[] classes) {
        return new Classes(inputs, classes);
    }

    /// Rows of numbers with the numbers expected for each.
    static Examples of(float[][] inputs, float[][] values) {
        return new Values(inputs, values);
    }

    /// Packed text.
    static Examples of(Sequences text) {
        return new Text(text);
    }

    /// Images with the class of each.
    static Examples of(ImageSet images) {
        return new Pictures(images);
    }

    record Classes(float[][] inputs, int[] classes) implements Examples {
        public Classes {
            rows(inputs, classes.length);
        }

        @Override
        public int count() {
            return inputs.length;
        }
    }

    record Values(float[][] inputs, float[][] values) implements Examples {
        public Values {
            rows(inputs, values.length);
            rows(values, values.length);
        }

        @Override
        public int count() {
            return inputs.length;
        }
    }

    record Text(Sequences sequences) implements Examples {
        @Override
        public int count() {
            return sequences.count();
        }
    }

    record Pictures(ImageSet images) implements Examples {
        @Override
        public int count() {
            return images.count();
        }
    }

    private static void rows(float[][] inputs, int targets) {
        if (inputs.length == 0 || inputs.length != targets) {
            throw new IngotException("examples: expected as many targets as inputs, and at least one, got "
                    + inputs.length + " inputs and " + targets + " targets");
        }
        for (int i = 0; i < inputs.length; i++) {
            if (inputs[i].length != inputs[0].length) {
                throw new IngotException(
                        "examples: row " + i + " has " + inputs[i].length + " numbers, row 0 has " + inputs[0].length);
            }
        }
    }
}
