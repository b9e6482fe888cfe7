package ingot.data;

import ingot.ir.IngotException;
import java.util.List;

/// How an image becomes the numbers that a network reads: channels, size, augmentation, normalisation.
///
/// A byte p of channel c becomes (p / 255 − mean[c]) / deviation[c]. Augmentation is a pure function of the key that
/// comes with it, and only for training.
///
/// @param size height and width
/// @param crop true: the largest square in the middle; false: the whole image, stretched
/// @param mean per channel, or one for all
/// @param deviation per channel, or one for all
/// @param flip augmentation: half of the images are turned left to right
/// @param shift augmentation: the image moves by up to so many pixels in both directions; black follows (the random
/// crop of a padded image)
public record ImagePreparation(
        int channels, int size, boolean crop, List<Double> mean, List<Double> deviation, boolean flip, int shift) {
    public ImagePreparation {
        mean = List.copyOf(mean);
        deviation = List.copyOf(deviation);
        if (channels != 1 && channels != 3) {
            throw new IngotException("images: expected 1 (grey) or 3 (colour) channels, got " + channels);
        }
        if (size < 1 || shift < 0 || shift >= size) {
            throw new IngotException(
                    "images: expected a size of at least 1 and a shift below it, got " + size + " and " + shift);
        }
        if (!fits(mean, channels) || !fits(deviation, channels)) {
            throw new IngotException("images: mean and deviation are one number, or one per channel (" + channels
                    + "), got " + mean + " and " + deviation);
        }
        if (!deviation.stream().allMatch(value -> value > 0)) {
            throw new IngotException("images: a deviation must be positive, got " + deviation);
        }
    }

    private static boolean fits(List<Double> values, int channels) {
        return values.size() == 1 || values.size() == channels;
    }

    /// Bytes around ½ ± ½, no augmentation.
    public static ImagePreparation of(int channels, int size) {
        return new ImagePreparation(channels, size, false, List.of(0.5), List.of(0.5), false, 0);
    }

    public ImagePreparation normalised(List<Double> means, List<Double> deviations) {
        return new ImagePreparation(channels, size, crop, means, deviations, flip, shift);
    }

    public ImagePreparation augmented(boolean turned, int moved) {
        return new ImagePreparation(channels, size, crop, mean, deviation, turned, moved);
    }

    public ImagePreparation cropped(boolean middle) {
        return new ImagePreparation(channels, size, middle, mean, deviation, flip, shift);
    }

    /// Numbers of an image.
    public int elements() {
        return channels * size * size;
    }

    /// The image with the channels and size of the network.
    public Image fit(Image image) {
        Image same = image.withChannels(channels);
        if (same.height() == size && same.width() == size) {
            return same;
        }
        return crop ? Resize.crop(same, size) : Resize.stretch(same, size);
    }

    /// The numbers [channels, size, size] of a fitted image, as they are for evaluation.
    public float[] numbers(Image image) {
        return numbers(image, false, 0, 0);
    }

    /// The numbers for training: the augmentation of image `index` in an epoch.
    public float[] numbers(Image image, long seed, long epoch, long index) {
        long bits = Keyed.mix(seed, epoch, index);
        int range = 2 * shift + 1;
        int down = (int) Math.floorMod(Keyed.mix(bits, 1), (long) range) - shift;
        int right = (int) Math.floorMod(Keyed.mix(bits, 2), (long) range) - shift;
        return numbers(image, flip && (bits & 1) == 1, down, right);
    }

    private float[] numbers(Image image, boolean turned, int down, int right) {
        if (image.channels() != channels || image.height() != size || image.width() != size) {
            throw new IllegalArgumentException("images: expected " + channels + " channels of " + size + " × " + size
                    + ", got " + image.channels() + " of " + image.height() + " × " + image.width());
        }
        float[] numbers = new float[elements()];
        float[] table = new float[256];
        for (int channel = 0; channel < channels; channel++) {
            double middle = mean.get(channel % mean.size());
            double spread = deviation.get(channel % deviation.size());
            for (int p = 0; p < 256; p++) {
                table[p] = (float) ((p / 255.0 - middle) / spread);
            }
            for (int y = 0; y < size; y++) {
                int from = y - down;
                int at = (channel * size + y) * size;
                for (int x = 0; x < size; x++) {
                    int column = turned ? size - 1 - (x - right) : x - right;
                    boolean inside = from >= 0 && from < size && column >= 0 && column < size;
                    numbers[at + x] = table[inside ? image.at(channel, from, column) : 0];
                }
            }
        }
        return numbers;
    }
}
