package ingot.data;

/// Images of another size: each pixel is the mean of those around its place, weighted by a triangle.
///
/// On each axis the new pixel i lies at (i + ½)·s − ½ of the old ones, s = old size / new size; an old pixel at
/// distance d counts max(0, 1 − d / max(1, s)), and the weights are divided by their sum. So enlarging is bilinear
/// interpolation, and reducing looks at all pixels (as Pillow's BILINEAR, and PyTorch's with antialias). First the
/// rows, then the columns; between them and at the end values are rounded to bytes, half up.
final class Resize {
    private Resize() {}

    /// The weights of one axis.
    ///
    /// @param first for each new pixel the first old one that counts
    private record Axis(int[] first, double[][] weights) {
        /// New pixels of the part [`from`, `from` + `length`) of the old ones, `length` may be fractional.
        static Axis of(int old, double from, double length, int size) {
            double scale = length / size;
            double reach = Math.max(1, scale);
            int[] first = new int[size];
            double[][] weights = new double[size][];
            for (int i = 0; i < size; i++) {
                double centre = from + (i + 0.5) * scale;
                int low = Math.max(0, (int) Math.floor(centre - reach));
                int high = Math.min(old, (int) Math.ceil(centre + reach));
                double[] row = new double[high - low];
                double sum = 0;
                for (int k = low; k < high; k++) {
                    row[k - low] = Math.max(0, 1 - Math.abs(k + 0.5 - centre) / reach);
                    sum += row[k - low];
                }
                for (int k = 0; k < row.length; k++) {
                    row[k] /= sum;
                }
                first[i] = low;
                weights[i] = row;
            }
            return new Axis(first, weights);
        }
    }

    /// Stretched to a square.
    static Image stretch(Image image, int size) {
        return apply(
                image,
                Axis.of(image.width(), 0, image.width(), size),
                Axis.of(image.height(), 0, image.height(), size),
                size);
    }

    /// The largest square in the middle, at the given size.
    static Image crop(Image image, int size) {
        int side = Math.min(image.width(), image.height());
        return apply(
                image,
                Axis.of(image.width(), (image.width() - side) / 2.0, side, size),
                Axis.of(image.height(), (image.height() - side) / 2.0, side, size),
                size);
    }

    private static Image apply(Image image, Axis across, Axis down, int size) {
        int channels = image.channels();
        int height = image.height();
        Image wide = new Image(channels, height, size, new byte[channels * height * size]);
        for (int line = 0; line < channels * height; line++) {
            for (int x = 0; x < size; x++) {
                double sum = 0;
                double[] weights = across.weights()[x];
                for (int k = 0; k < weights.length; k++) {
                    sum += weights[k] * (image.pixels()[line * image.width() + across.first()[x] + k] & 0xFF);
                }
                wide.pixels()[line * size + x] = (byte) (int) (sum + 0.5);
            }
        }
        Image result = new Image(channels, size, size, new byte[channels * size * size]);
        for (int channel = 0; channel < channels; channel++) {
            for (int y = 0; y < size; y++) {
                double[] weights = down.weights()[y];
                for (int x = 0; x < size; x++) {
                    double sum = 0;
                    for (int k = 0; k < weights.length; k++) {
                        sum += weights[k] * wide.at(channel, down.first()[y] + k, x);
                    }
                    result.pixels()[(channel * size + y) * size + x] = (byte) (int) (sum + 0.5);
                }
            }
        }
        return result;
    }
}
