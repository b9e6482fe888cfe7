package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32;
import java.util.zip.GZIPOutputStream;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ImagesTest {
    @TempDir
    Path folder;

    private Path write(String name, BufferedImage image) throws IOException {
        Path file = folder.resolve(name);
        Files.createDirectories(file.getParent());
        String format = name.substring(name.lastIndexOf('.') + 1);
        assertThat(ImageIO.write(image, format, file.toFile())).isTrue();
        return file;
    }

    private static BufferedImage colours(int width, int height) {
        BufferedImage image = new BufferedImage(width, height, BufferedImage.TYPE_INT_RGB);
        for (int y = 0; y < height; y++) {
            for (int x = 0; x < width; x++) {
                image.setRGB(x, y, (10 + x) << 16 | (100 + y) << 8 | 200 + x + y);
            }
        }
        return image;
    }

    @ParameterizedTest
    @ValueSource(strings = {"a/x.png", "a/x.bmp"})
    void coloursAreThoseOfTheFile(String name) throws IOException {
        Image image = Image.read(write(name, colours(5, 3)));
        assertThat(List.of(image.channels(), image.height(), image.width())).containsExactly(3, 3, 5);
        for (int y = 0; y < 3; y++) {
            for (int x = 0; x < 5; x++) {
                assertThat(List.of(image.at(0, y, x), image.at(1, y, x), image.at(2, y, x)))
                        .containsExactly(10 + x, 100 + y, 200 + x + y);
            }
        }
    }

    @Test
    void lossyAndIndexedFilesAreRead() throws IOException {
        for (String name : List.of("a/x.jpg", "a/x.gif")) {
            Image image = Image.read(write(name, colours(16, 16)));
            assertThat(image.at(0, 8, 8)).isBetween(10, 30);
            assertThat(image.at(2, 8, 8)).isBetween(205, 225);
        }
    }

    /// Java itself would make 100 of grey to 167 of RGB.
    @Test
    void greyStaysAsItIs() throws IOException {
        BufferedImage grey = new BufferedImage(2, 1, BufferedImage.TYPE_BYTE_GRAY);
        grey.getRaster().setSample(0, 0, 0, 100);
        grey.getRaster().setSample(1, 0, 0, 255);
        Image image = Image.read(write("a/grey.png", grey));
        assertThat(image.channels()).isEqualTo(1);
        assertThat(image.pixels()).containsExactly(100, -1);
        assertThat(image.withChannels(3).pixels()).containsExactly(100, -1, 100, -1, 100, -1);
        BufferedImage deep = new BufferedImage(1, 1, BufferedImage.TYPE_USHORT_GRAY);
        deep.getRaster().setSample(0, 0, 0, 0x6465);
        assertThat(Image.read(write("a/deep.png", deep)).pixels()).containsExactly(0x64);
        assertThat(new Image(3, 1, 1, new byte[] {100, (byte) 200, 50})
                        .withChannels(1)
                        .pixels())
                .containsExactly(153);
    }

    @Test
    void foldersAreClassesInTheOrderOfTheirNames() throws IOException {
        write("animals/dog/2.png", colours(2, 2));
        write("animals/dog/1.png", colours(2, 2));
        write("animals/cat/deep/er/9.JPG".replace("JPG", "jpg"), colours(8, 8));
        Files.writeString(folder.resolve("animals/cat/notes.txt"), "no image");
        Files.createDirectories(folder.resolve("animals/.hidden"));
        Files.copy(folder.resolve("animals/dog/1.png"), folder.resolve("animals/.hidden/1.png"));
        Images images = Images.open(folder.resolve("animals"));
        assertThat(images.classes()).containsExactly("cat", "dog");
        assertThat(images.count()).isEqualTo(3);
        assertThat(List.of(images.label(0), images.label(1), images.label(2))).containsExactly(0, 1, 1);
        assertThat(images.name(1)).isEqualTo(Path.of("dog", "1.png").toString());
        assertThat(images.read(0).width()).isEqualTo(8);
        Images part = images.subset(2, 0);
        assertThat(part.name(0)).isEqualTo(images.name(2));
        assertThat(part.label(1)).isEqualTo(0);
        assertThat(part.fingerprint()).isNotEqualTo(images.fingerprint());
        assertThat(images.labelled(List.of("bird", "dog", "cat")).label(0)).isEqualTo(2);
        assertThatThrownBy(() -> images.labelled(List.of("cats", "dog")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("of the class cat")
                .hasMessageContaining("did you mean cats?");
    }

    @Test
    void whatIsKeptIsWhatIsRead() throws IOException {
        write("animals/cat/1.png", colours(9, 6));
        write("animals/dog/1.png", colours(5, 7));
        Images images = Images.open(folder.resolve("animals"));
        ImagePreparation preparation = ImagePreparation.of(3, 4).augmented(true, 1);
        ImageSet kept = ImageSet.of(images, preparation);
        ImageSet read = ImageSet.streaming(images, preparation);
        for (int epoch = 0; epoch < 3; epoch++) {
            for (int i = 0; i < 2; i++) {
                assertThat(kept.numbers(i)).isEqualTo(read.numbers(i));
                assertThat(kept.numbers(i, 3, epoch)).isEqualTo(read.numbers(i, 3, epoch));
            }
        }
        Files.delete(folder.resolve("animals/dog/1.png"));
        assertThat(kept.numbers(1)).hasSize(48);
        assertThatThrownBy(() -> read.numbers(1))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("1.png");
    }

    @Test
    void whatIsNoFolderOfClassesIsRefused() throws IOException {
        write("one/cat/1.png", colours(2, 2));
        assertThatThrownBy(() -> Images.open(folder.resolve("one")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("has 1 folders with images, cat");
        write("one/stray.png", colours(2, 2));
        assertThatThrownBy(() -> Images.open(folder.resolve("one")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("outside of a folder: stray.png");
        assertThatThrownBy(() -> Images.open(folder.resolve("none")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("does not exist");
    }

    /// Cut anywhere, or with any byte changed: an image or an error that names the file, and nothing else.
    @ParameterizedTest
    @ValueSource(strings = {"png", "jpg", "bmp", "gif"})
    void damagedFilesAreNamed(String format) throws IOException {
        byte[] whole = Files.readAllBytes(write("a/x." + format, colours(20, 20)));
        Path file = folder.resolve("broken." + format);
        Random random = new Random(5);
        int refused = 0;
        for (int i = 0; i < 150; i++) {
            byte[] bytes = whole.clone();
            if (i % 2 == 0) {
                bytes = Arrays.copyOf(bytes, random.nextInt(whole.length));
            } else {
                bytes[random.nextInt(Math.min(60, whole.length))] = (byte) random.nextInt();
            }
            Files.write(file, bytes);
            try {
                Image.read(file);
            } catch (IngotException e) {
                assertThat(e).hasMessageContaining(file.toString());
                refused++;
            }
        }
        assertThat(refused).isPositive();
    }

    @Test
    void sizesThatNobodyHasAreNotAllocated() throws IOException {
        byte[] png = Files.readAllBytes(write("a/x.png", colours(2, 2)));
        png[16 + 1] = 16; // a width and a height of 2²⁰
        png[20 + 1] = 16;
        CRC32 crc = new CRC32(); // of the header chunk
        crc.update(png, 12, 17);
        ByteBuffer.wrap(png).putInt(29, (int) crc.getValue());
        Path file = folder.resolve("huge.png");
        Files.write(file, png);
        assertThatThrownBy(() -> Image.read(file))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("huge.png")
                .hasMessageContaining("at most 40000000 are read");
    }

    private Path idx(String name, int magic, int[] dims, int bytes) throws IOException {
        Path file = folder.resolve(name);
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        try (OutputStream packed = name.endsWith(".gz") ? new GZIPOutputStream(content) : content;
                DataOutputStream out = new DataOutputStream(packed)) {
            out.writeInt(magic);
            for (int dim : dims) {
                out.writeInt(dim);
            }
            for (int i = 0; i < bytes; i++) {
                out.write(i);
            }
        }
        return Files.write(file, content.toByteArray());
    }

    @ParameterizedTest
    @ValueSource(strings = {"train-images-idx3-ubyte.gz", "t10k-images.idx3-ubyte"})
    void idxFiles(String name) throws IOException {
        Path file = idx(name, 0x803, new int[] {3, 2, 4}, 24);
        idx(name.replace("images", "labels").replace("idx3", "idx1"), 0x801, new int[] {3}, 3);
        Images images = Images.open(file);
        assertThat(images.count()).isEqualTo(3);
        assertThat(images.classes()).containsExactly("0", "1", "2");
        assertThat(images.label(2)).isEqualTo(2);
        Image second = images.read(1);
        assertThat(List.of(second.channels(), second.height(), second.width())).containsExactly(1, 2, 4);
        assertThat(second.at(0, 1, 3)).isEqualTo(15);
        assertThat(images.named(List.of("coat", "bag", "shirt")).classes()).contains("bag");
    }

    @Test
    void tablesOfPixels() throws IOException {
        Path file = folder.resolve("a.csv");
        Files.writeString(file, "label,pixel1,pixel2,pixel3,pixel4\n10,0,1,2,255\n9,4,5,6,7\n");
        Images images = Images.open(file);
        assertThat(images.classes()).containsExactly("9", "10");
        assertThat(images.label(0)).isEqualTo(1);
        assertThat(images.read(0).pixels()).containsExactly(0, 1, 2, -1);
        for (String[] bad : new String[][] {
            {"label,a,b\n1,2,3\n", "2 columns of pixels, which is no square"},
            {"label,a\n1,256\n", "line 2: a pixel is 0 to 255, got '256'"},
            {"label,a\n1\n", "line 2 has 1 columns, the header 2"},
            {"a,label\n1,1\n", "expected a header label,pixel1"},
            {"label,a\n", "has no images"}
        }) {
            Files.writeString(file, bad[0]);
            assertThatThrownBy(() -> Images.open(file))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining(bad[1]);
        }
    }

    @Test
    void badIdxFilesAreRefused() throws IOException {
        Path images = idx("x-images-idx3-ubyte", 0x803, new int[] {3, 2, 4}, 24);
        assertThatThrownBy(() -> Images.open(images))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("x-labels-idx1-ubyte, which does not exist");
        idx("x-labels-idx1-ubyte", 0x801, new int[] {2}, 2);
        assertThatThrownBy(() -> Images.open(images))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("3 images")
                .hasMessageContaining("2 labels");
        assertThatThrownBy(() -> Idx.read(idx("a", 0xD03, new int[] {1}, 1), 3))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("begins with d03, expected 803");
        assertThatThrownBy(() -> Idx.read(idx("b", 0x803, new int[] {60000, 28, 28}, 100), 3))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("ends after 100 of the 47040000 bytes");
        assertThatThrownBy(() -> Idx.read(idx("c", 0x803, new int[] {1 << 20, 1 << 20, 28}, 100), 3))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("axis 1 has 1048576");
        assertThatThrownBy(() -> Idx.read(idx("d.gz", 0x803, new int[] {1}, 0), 3))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("cut off");
        Path half = Files.write(
                folder.resolve("e.gz"),
                Arrays.copyOf(Files.readAllBytes(idx("f.gz", 0x803, new int[] {9, 9, 9}, 729)), 200));
        assertThatThrownBy(() -> Idx.read(half, 3))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("e.gz");
    }
}
