package ingot.data;

import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Images with the class of each, in one fixed order. They are read and decoded one at a time, when they are asked for.
///
/// A source is
/// - a folder with a folder per class: `animals/cat/1.jpg`; classes and files are in the order of their names
/// - an IDX file of images, `train-images-idx3-ubyte.gz`, beside that of its labels, `train-labels-idx1-ubyte.gz`; its
///   classes are numbers
/// - a CSV file of grey squares, `label,pixel1,…` with a byte per pixel
public final class Images {
    private final Pixels pixels;
    private final List<String> classes;
    private final int[] labels;
    private final String fingerprint;

    /// Where the images themselves are.
    private interface Pixels {
        String name(int index);

        Image read(int index);
    }

    private record Folder(Path root, List<Path> files) implements Pixels {
        @Override
        public String name(int index) {
            return root.relativize(files.get(index)).toString();
        }

        @Override
        public Image read(int index) {
            return Image.read(files.get(index));
        }
    }

    /// All pixels [images, height, width] of a file.
    private record Array(Path file, int height, int width, byte[] values) implements Pixels {
        @Override
        public String name(int index) {
            return file.getFileName() + "#" + index;
        }

        @Override
        public Image read(int index) {
            int size = height * width;
            return new Image(1, height, width, Arrays.copyOfRange(values, index * size, (index + 1) * size));
        }
    }

    /// Some images of another source.
    private record Part(Pixels all, int[] indices) implements Pixels {
        @Override
        public String name(int index) {
            return all.name(indices[index]);
        }

        @Override
        public Image read(int index) {
            return all.read(indices[index]);
        }
    }

    private Images(Pixels pixels, List<String> classes, int[] labels, String fingerprint) {
        this.pixels = pixels;
        this.classes = List.copyOf(classes);
        this.labels = labels;
        this.fingerprint = fingerprint;
    }

    public static Images open(Path source) {
        if (Files.isDirectory(source)) {
            return folder(source);
        }
        if (Files.isRegularFile(source)) {
            return source.toString().endsWith(".csv") ? table(source) : idx(source);
        }
        throw new IngotException("images: " + source + " does not exist; expected a folder with a folder per class,"
                + " an IDX file of images or a CSV file of pixels");
    }

    private static Images folder(Path root) {
        SortedMap<String, List<Path>> byClass = new TreeMap<>();
        List<String> strays = new ArrayList<>();
        MessageDigest digest = sha256();
        try (Stream<Path> walk = Files.walk(root)) {
            for (Path file : walk.filter(path -> Files.isRegularFile(path) && Image.named(path))
                    .toList()) {
                Path place = root.relativize(file);
                if (hidden(place)) {
                    continue;
                }
                if (place.getNameCount() < 2) {
                    strays.add(place.toString());
                    continue;
                }
                byClass.computeIfAbsent(place.getName(0).toString(), name -> new ArrayList<>())
                        .add(file);
            }
            if (!strays.isEmpty()) {
                throw new IngotException("images: " + root + " has " + strays.size() + " images outside of a folder: "
                        + strays.getFirst() + "; the folder that an image lies in is its class");
            }
            if (byClass.size() < 2) {
                throw new IngotException("images: " + root + " has " + byClass.size() + " folders with images"
                        + (byClass.isEmpty() ? "" : ", " + byClass.firstKey()) + "; expected one per class, at least"
                        + " two, with .png, .jpg, .bmp or .gif files");
            }
            List<Path> files = new ArrayList<>();
            List<Integer> labels = new ArrayList<>();
            List<String> classes = new ArrayList<>(byClass.keySet());
            for (int label = 0; label < classes.size(); label++) {
                for (Path file : byClass.getOrDefault(classes.get(label), List.of()).stream()
                        .sorted()
                        .toList()) {
                    files.add(file);
                    labels.add(label);
                    String line = root.relativize(file) + " " + Files.size(file) + "\n";
                    digest.update(line.getBytes(StandardCharsets.UTF_8));
                }
            }
            return new Images(
                    new Folder(root, files),
                    classes,
                    labels.stream().mapToInt(Integer::intValue).toArray(),
                    HexFormat.of().formatHex(digest.digest()));
        } catch (IOException e) {
            throw new IngotException("images: cannot list " + root + ": " + e.getMessage(), e);
        }
    }

    private static boolean hidden(Path place) {
        for (Path part : place) {
            if (part.toString().startsWith(".")) {
                return true;
            }
        }
        return false;
    }

    private static Images idx(Path file) {
        String name = file.getFileName().toString();
        if (!name.contains("images") || !name.contains("idx3")) {
            throw new IngotException("images: " + file + " is neither a folder nor called like an IDX file of images,"
                    + " such as train-images-idx3-ubyte.gz");
        }
        Path labelFile = file.resolveSibling(name.replace("images", "labels").replace("idx3", "idx1"));
        if (!Files.isRegularFile(labelFile)) {
            throw new IngotException(
                    "images: the labels of " + file + " are expected in " + labelFile + ", which does not exist");
        }
        Idx images = Idx.read(file, 3);
        Idx found = Idx.read(labelFile, 1);
        int count = images.dims().getFirst();
        if (found.values().length != count) {
            throw new IngotException("images: " + file + " has " + count + " images, and " + labelFile + " "
                    + found.values().length + " labels");
        }
        int[] labels =
                IntStream.range(0, count).map(i -> found.values()[i] & 0xFF).toArray();
        int classes = Arrays.stream(labels).max().orElse(0) + 1;
        MessageDigest digest = sha256();
        digest.update(images.values());
        digest.update(found.values());
        return new Images(
                new Array(file, images.dims().get(1), images.dims().get(2), images.values()),
                IntStream.range(0, classes).mapToObj(Integer::toString).toList(),
                labels,
                HexFormat.of().formatHex(digest.digest()));
    }

    private static Images table(Path file) {
        PixelTable table = PixelTable.read(file);
        List<String> classes = table.labels().stream()
                .distinct()
                .sorted(Comparator.comparing(String::length).thenComparing(name -> name))
                .toList();
        MessageDigest digest = sha256();
        digest.update(table.pixels());
        digest.update(String.join(",", table.labels()).getBytes(StandardCharsets.UTF_8));
        return new Images(
                new Array(file, table.size(), table.size(), table.pixels()),
                classes,
                table.labels().stream().mapToInt(classes::indexOf).toArray(),
                HexFormat.of().formatHex(digest.digest()));
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    public int count() {
        return labels.length;
    }

    /// Names of the classes, in the order of their labels.
    public List<String> classes() {
        return classes;
    }

    public int label(int index) {
        return labels[index];
    }

    /// What an image is called: its file below the source.
    public String name(int index) {
        return pixels.name(index);
    }

    /// Reads and decodes an image; what cannot be decoded is an error with its name.
    public Image read(int index) {
        return pixels.read(index);
    }

    /// SHA-256 of what the images are: names and sizes of files, or the bytes of an array, with the labels.
    public String fingerprint() {
        return fingerprint;
    }

    /// The images at some indices, in that order.
    public Images subset(int... indices) {
        int[] chosen = indices.clone();
        MessageDigest digest = sha256();
        digest.update((fingerprint + Arrays.toString(chosen)).getBytes(StandardCharsets.UTF_8));
        return new Images(
                new Part(pixels, chosen),
                classes,
                Arrays.stream(chosen).map(index -> labels[index]).toArray(),
                HexFormat.of().formatHex(digest.digest()));
    }

    /// The same images with other names for the classes, one for each.
    public Images named(List<String> names) {
        if (names.size() < classes.size()) {
            throw new IngotException("images: " + names.size() + " names for " + classes.size() + " classes: " + names);
        }
        return new Images(pixels, names, labels, fingerprint);
    }

    /// The same images with the labels of other classes, such as those of the training images.
    public Images labelled(List<String> others) {
        int[] moved = new int[labels.length];
        for (int i = 0; i < moved.length; i++) {
            moved[i] = others.indexOf(classes.get(labels[i]));
            if (moved[i] < 0) {
                String name = classes.get(labels[i]);
                Optional<String> near = Nearest.close(name, others);
                throw new IngotException("images: " + name(i) + " is of the class " + name + ", which is not among "
                        + others
                        + near.map(other -> "; did you mean " + other + "?").orElse(""));
            }
        }
        return new Images(pixels, others, moved, fingerprint);
    }
}
