package ingot.data;

import ingot.ir.IngotException;
import java.awt.color.ColorSpace;
import java.awt.image.BufferedImage;
import java.awt.image.Raster;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Locale;
import javax.imageio.ImageIO;
import javax.imageio.ImageReader;
import javax.imageio.stream.ImageInputStream;
import javax.imageio.stream.MemoryCacheImageInputStream;

/// A decoded image: bytes [channels, height, width], grey (1 channel) or red, green, blue (3).
public record Image(int channels, int height, int width, byte[] pixels) {
    /// More pixels than this are refused before they are decoded: a small file can declare any size.
    private static final long MOST_PIXELS = 40_000_000;

    public Image {
        boolean fits = (channels == 1 || channels == 3) && height > 0 && width > 0;
        if (!fits || pixels.length != (long) channels * height * width) {
            throw new IllegalArgumentException("image: " + pixels.length + " bytes are not " + channels
                    + " (1 or 3) channels of " + height + " × " + width);
        }
    }

    int at(int channel, int y, int x) {
        return pixels[(channel * height + y) * width + x] & 0xFF;
    }

    /// Reads a PNG, JPEG, BMP or GIF (its first picture). Transparency is left out: what a pixel hides behind it
    /// counts.
    public static Image read(Path file) {
        try (InputStream stream = Files.newInputStream(file)) {
            return read(file.toString(), stream);
        } catch (IOException e) {
            throw new IngotException("image: cannot open " + file + ": " + e.getMessage(), e);
        }
    }

    /// @param name what errors call it
    static Image read(String name, InputStream stream) {
        try (ImageInputStream input = new MemoryCacheImageInputStream(stream)) {
            Iterator<ImageReader> readers = ImageIO.getImageReaders(input);
            if (!readers.hasNext()) {
                throw new IngotException("image: " + name + " is no PNG, JPEG, BMP or GIF; remove it, or convert it");
            }
            ImageReader reader = readers.next();
            try {
                reader.setInput(input, true, true);
                long size = (long) reader.getWidth(0) * reader.getHeight(0);
                if (size > MOST_PIXELS) {
                    throw new IngotException("image: " + name + " says that it has " + reader.getWidth(0) + " × "
                            + reader.getHeight(0) + " pixels; at most " + MOST_PIXELS + " are read");
                }
                return of(reader.read(0));
            } finally {
                reader.dispose();
            }
        } catch (IngotException e) {
            throw e;
        } catch (IOException | RuntimeException e) { // readers throw all kinds over bad bytes
            String message = e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage();
            throw new IngotException(
                    "image: " + name + " cannot be decoded: " + message + "; it is damaged or of a kind that Java does"
                            + " not read: remove it, or convert it to PNG",
                    e);
        }
    }

    private static Image of(BufferedImage image) {
        int height = image.getHeight();
        int width = image.getWidth();
        boolean grey = image.getColorModel().getColorSpace().getType() == ColorSpace.TYPE_GRAY;
        if (grey) {
            return new Image(1, height, width, grey(image));
        }
        byte[] pixels = new byte[3 * height * width];
        int[] row = new int[width];
        for (int y = 0; y < height; y++) {
            image.getRGB(0, y, width, 1, row, 0, width);
            for (int x = 0; x < width; x++) {
                int at = y * width + x;
                pixels[at] = (byte) (row[x] >> 16);
                pixels[height * width + at] = (byte) (row[x] >> 8);
                pixels[2 * height * width + at] = (byte) row[x];
            }
        }
        return new Image(3, height, width, pixels);
    }

    /// The samples as the file has them: Java takes grey for linear light, and its conversion to RGB would brighten.
    private static byte[] grey(BufferedImage image) {
        Raster raster = image.getRaster();
        int bits = image.getColorModel().getComponentSize(0);
        byte[] pixels = new byte[image.getHeight() * image.getWidth()];
        for (int y = 0; y < image.getHeight(); y++) {
            for (int x = 0; x < image.getWidth(); x++) {
                int sample = raster.getSample(x, y, 0);
                pixels[y * image.getWidth() + x] =
                        (byte) (bits > 8 ? sample >> (bits - 8) : sample * 255 / ((1 << bits) - 1));
            }
        }
        return pixels;
    }

    /// With another number of channels: grey as (299 red + 587 green + 114 blue) / 1000, rounded (ITU-R BT.601).
    Image withChannels(int wanted) {
        if (wanted == channels) {
            return this;
        }
        int size = height * width;
        byte[] other = new byte[wanted * size];
        for (int i = 0; i < size; i++) {
            if (wanted == 1) {
                int red = pixels[i] & 0xFF;
                int green = pixels[size + i] & 0xFF;
                int blue = pixels[2 * size + i] & 0xFF;
                other[i] = (byte) ((299 * red + 587 * green + 114 * blue + 500) / 1000);
            } else {
                for (int channel = 0; channel < wanted; channel++) {
                    other[channel * size + i] = pixels[i];
                }
            }
        }
        return new Image(wanted, height, width, other);
    }

    /// True for the names of files that are images.
    static boolean named(Path file) {
        String name = file.getFileName().toString().toLowerCase(Locale.ROOT);
        return name.endsWith(".png")
                || name.endsWith(".jpg")
                || name.endsWith(".jpeg")
                || name.endsWith(".bmp")
                || name.endsWith(".gif");
    }
}
