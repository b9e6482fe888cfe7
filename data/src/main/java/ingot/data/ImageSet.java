package ingot.data;

import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;

/// Images with the preparation that makes them rows of numbers.
///
/// They stay in files. If all of them, fitted, take less than a quarter of Java's memory, what was read once is kept.
/// Any number of threads may read.
public final class ImageSet {
    private final Images images;
    private final ImagePreparation preparation;
    private final AtomicReferenceArray<byte[]> kept; // fitted; empty if there is no room

    private ImageSet(Images images, ImagePreparation preparation, long room) {
        this.images = images;
        this.preparation = preparation;
        boolean fits = (long) images.count() * preparation.elements() <= room;
        kept = new AtomicReferenceArray<>(fits ? images.count() : 0);
    }

    public static ImageSet of(Images images, ImagePreparation preparation) {
        return new ImageSet(images, preparation, Runtime.getRuntime().maxMemory() / 4);
    }

    /// Keeps nothing.
    static ImageSet streaming(Images images, ImagePreparation preparation) {
        return new ImageSet(images, preparation, 0);
    }

    public Images images() {
        return images;
    }

    public ImagePreparation preparation() {
        return preparation;
    }

    public int count() {
        return images.count();
    }

    public int label(int index) {
        return images.label(index);
    }

    public List<String> classes() {
        return images.classes();
    }

    /// The numbers [channels, size, size] of an image, for evaluation.
    public float[] numbers(int index) {
        return preparation.numbers(fitted(index));
    }

    /// The same for training: augmented by (seed, epoch, index).
    public float[] numbers(int index, long seed, long epoch) {
        return preparation.numbers(fitted(index), seed, epoch, index);
    }

    private Image fitted(int index) {
        if (kept.length() == 0) {
            return preparation.fit(images.read(index));
        }
        byte[] before = kept.get(index);
        if (before != null) {
            return new Image(preparation.channels(), preparation.size(), preparation.size(), before);
        }
        Image image = preparation.fit(images.read(index));
        kept.set(index, image.pixels());
        return image;
    }
}
