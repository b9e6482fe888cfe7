package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PredictTest {
    @TempDir
    Path folder;

    /// 40 images of 8 × 8: class 0 is bright above, class 1 below.
    private Path idx() throws IOException {
        ByteArrayOutputStream images = new ByteArrayOutputStream();
        ByteArrayOutputStream labels = new ByteArrayOutputStream();
        try (DataOutputStream pixels = new DataOutputStream(images);
                DataOutputStream classes = new DataOutputStream(labels)) {
            pixels.writeInt(0x803);
            pixels.writeInt(40);
            pixels.writeInt(8);
            pixels.writeInt(8);
            classes.writeInt(0x801);
            classes.writeInt(40);
            for (int i = 0; i < 40; i++) {
                classes.write(i % 2);
                for (int pixel = 0; pixel < 64; pixel++) {
                    pixels.write((pixel / 32 == i % 2 ? 150 : 0) + (i * 7 + pixel * 13) % 100);
                }
            }
        }
        Files.write(folder.resolve("labels-idx1-ubyte"), labels.toByteArray());
        return Files.write(folder.resolve("images-idx3-ubyte"), images.toByteArray());
    }

    private Path bitmap(boolean brightAbove) throws IOException {
        ByteBuffer file = ByteBuffer.allocate(54 + 3 * 64).order(ByteOrder.LITTLE_ENDIAN);
        file.put((byte) 'B').put((byte) 'M').putInt(file.capacity()).putInt(0).putInt(54);
        file.putInt(40).putInt(8).putInt(8).putShort((short) 1).putShort((short) 24);
        for (int pixel = 0; pixel < 64; pixel++) { // from the bottom up
            byte grey = (byte) (pixel / 32 == (brightAbove ? 1 : 0) ? 200 : 20);
            file.position(54 + 3 * pixel).put(grey).put(grey).put(grey);
        }
        return Files.write(folder.resolve("image.bmp"), file.array());
    }

    @Test
    void trainsAndPredicts() throws IOException {
        String run = folder.resolve("run").toString();
        Path config = Files.writeString(folder.resolve("a.yaml"), """
            task: image-classification
            run: '%s'
            threads: 1
            model: {size: 8, channels: 1, stem: 4}
            data: {source: '%s', labels: [above, below], held-out: 0.25}
            train: {epochs: 12, batch: 10, learning-rate: 2e-2}
            """.formatted(run, idx()));
        Invocation trained = Invocation.of("train", config.toString());
        assertThat(trained.err()).isEmpty();
        assertThat(trained.status()).isZero();
        assertThat(trained.out())
                .contains("image classification", "30 images to learn from", "resnet from scratch", "images/s")
                .contains("Held out: accuracy 100.00 %")
                .contains("predict " + run + " image.png", "train " + config);
        Invocation above = Invocation.of("predict", run, bitmap(true).toString());
        assertThat(above.err()).isEmpty();
        assertThat(above.out()).startsWith("above ").contains(" %   below ");
        Invocation below = Invocation.of("predict", run, bitmap(false).toString(), "--top", "1");
        assertThat(below.out()).startsWith("below ").doesNotContain("above");
        Files.writeString(folder.resolve("image.png"), "nothing");
        Invocation broken =
                Invocation.of("predict", run, folder.resolve("image.png").toString());
        assertThat(broken.status()).isEqualTo(Main.FAILED);
        assertThat(broken.err()).contains("image.png is no PNG, JPEG, BMP or GIF");
        assertThat(Invocation.of("predict", run).err()).contains("name an image");
    }
}
