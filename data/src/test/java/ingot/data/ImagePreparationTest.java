package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class ImagePreparationTest {
    private static Image row(int... values) {
        byte[] pixels = new byte[values.length];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = (byte) values[i];
        }
        return new Image(1, 1, values.length, pixels);
    }

    private static Image square(int... values) {
        int side = (int) Math.sqrt(values.length);
        return new Image(1, side, side, row(values).pixels());
    }

    private static int[] bytes(Image image) {
        int[] values = new int[image.pixels().length];
        for (int i = 0; i < values.length; i++) {
            values[i] = image.pixels()[i] & 0xFF;
        }
        return values;
    }

    /// The values of Pillow's `resize((2, 2), BILINEAR)` and `resize((4, 4), BILINEAR)`.
    @Test
    void sizesChangeByTriangles() {
        // halving: new pixel 0 lies between old 0 and 1 and reaches 2 on each side: weights 3 3 1 of 7
        Image four = square(0, 40, 80, 120, 0, 40, 80, 120, 0, 40, 80, 120, 0, 40, 80, 120);
        int left = Math.round((3 * 0 + 3 * 40 + 80) / 7f);
        int right = Math.round((40 + 3 * 80 + 3 * 120) / 7f);
        assertThat(bytes(Resize.stretch(four, 2))).containsExactly(left, right, left, right);
        // doubling: weights ¾ and ¼, at the edge the pixel itself
        assertThat(bytes(Resize.stretch(row(0, 100), 4))).startsWith(0, 25, 75, 100);
        assertThat(bytes(Resize.stretch(four, 4))).containsExactly(bytes(four));
    }

    @Test
    void theMiddleSquareIsCut() {
        assertThat(bytes(Resize.crop(row(1, 2, 9, 3, 4), 1))).containsExactly(9);
        Image wide = new Image(1, 2, 4, new byte[] {1, 2, 3, 4, 5, 6, 7, 8});
        assertThat(bytes(ImagePreparation.of(1, 2).cropped(true).fit(wide))).containsExactly(2, 3, 6, 7);
    }

    @Test
    void bytesAreNormalisedPerChannel() {
        ImagePreparation preparation =
                ImagePreparation.of(3, 1).normalised(List.of(0.0, 0.5, 0.25), List.of(1.0, 0.5, 2.0));
        assertThat(preparation.numbers(new Image(3, 1, 1, new byte[] {51, (byte) 255, 0})))
                .containsExactly(0.2f, 1f, -0.125f);
    }

    @Test
    void augmentationIsAFunctionOfSeedEpochAndIndex() {
        ImagePreparation plain = ImagePreparation.of(1, 3).normalised(List.of(0.0), List.of(1 / 255.0));
        ImagePreparation moved = plain.augmented(true, 1);
        Image image = square(1, 2, 3, 4, 5, 6, 7, 8, 9);
        assertThat(moved.numbers(image)).containsExactly(1, 2, 3, 4, 5, 6, 7, 8, 9);
        Set<List<Float>> seen = new HashSet<>();
        for (int index = 0; index < 500; index++) {
            float[] numbers = moved.numbers(image, 7, 2, index);
            assertThat(moved.numbers(image, 7, 2, index)).isEqualTo(numbers);
            seen.add(java.util.stream.IntStream.range(0, 9)
                    .mapToObj(i -> numbers[i])
                    .toList());
        }
        // 3 × 3 places, turned or not
        assertThat(seen).hasSize(18);
        assertThat(seen).contains(List.of(3f, 2f, 1f, 6f, 5f, 4f, 9f, 8f, 7f));
        assertThat(seen).contains(List.of(5f, 6f, 0f, 8f, 9f, 0f, 0f, 0f, 0f));
    }

    @Test
    void settingsThatCannotBeAreRefused() {
        assertThatThrownBy(() -> ImagePreparation.of(2, 8))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("got 2");
        assertThatThrownBy(() -> ImagePreparation.of(3, 8).normalised(List.of(0.0, 1.0), List.of(1.0)))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("one per channel (3)");
        assertThatThrownBy(() -> ImagePreparation.of(3, 8).augmented(false, 8))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("a shift below it, got 8 and 8");
    }
}
