package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.DType;
import ingot.ir.Shape;
import ingot.ir.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// The algebra of layouts against lists of element positions.
class LayoutTest {
    private static Layout rowMajor(int... dims) {
        return Layout.rowMajor(Type.f32(dims));
    }

    /// Positions of all elements in row-major order.
    private static List<Long> positions(Layout layout) {
        List<Long> positions = new ArrayList<>(List.of(layout.offset()));
        for (int axis = 0; axis < layout.shape().rank(); axis++) {
            List<Long> next = new ArrayList<>();
            for (long position : positions) {
                for (int i = 0; i < layout.shape().dim(axis); i++) {
                    next.add(position + i * layout.stride(axis));
                }
            }
            positions = next;
        }
        return positions;
    }

    @Test
    void transposeExchangesStrides() {
        assertThat(rowMajor(2, 3).transpose(List.of(1, 0)).strides()).containsExactly(1L, 3L);
    }

    @Test
    void sliceStartsAtAnOffsetAndStepsFurther() {
        Layout slice = rowMajor(4, 6).slice(List.of(1, 2), List.of(4, 6), List.of(2, 3));
        assertThat(slice.shape()).isEqualTo(Shape.of(2, 2));
        assertThat(positions(slice)).containsExactly(8L, 11L, 20L, 23L);
    }

    @Test
    void reverseStartsAtTheEnd() {
        assertThat(positions(rowMajor(4).reverse(List.of(0)))).containsExactly(3L, 2L, 1L, 0L);
    }

    @Test
    void broadcastRepeatsByStrideZero() {
        Layout row = rowMajor(1, 3).broadcast(Shape.of(2, 5, 3), List.of(1, 2));
        assertThat(row.strides()).containsExactly(0L, 0L, 1L);
    }

    @Test
    void reshapeMergesWhatIsContiguousAndSplitsAnything() {
        Layout heads = rowMajor(2, 8, 3 * 16).part(2, 16, 16); // one of q, k, v
        assertThat(heads.reshape(Shape.of(2, 8, 4, 4)).orElseThrow().strides()).containsExactly(384L, 48L, 4L, 1L);
        assertThat(heads.reshape(Shape.of(16, 16)).orElseThrow().strides()).containsExactly(48L, 1L);
        assertThat(heads.reshape(Shape.of(2, 128))).isEmpty();
        assertThat(rowMajor(2, 3).transpose(List.of(1, 0)).reshape(Shape.of(6))).isEmpty();
    }

    @Test
    void reshapeKeepsTheOrderOfElements() {
        Random random = new Random(1);
        int[][] shapes = {{24}, {2, 12}, {2, 3, 4}, {4, 6}, {6, 4}, {1, 24, 1}, {2, 1, 3, 2, 2}, {3, 8}};
        int views = 0;
        for (int i = 0; i < 2000; i++) {
            Layout layout = rowMajor(shapes[random.nextInt(shapes.length)]);
            List<Integer> axes = new ArrayList<>();
            for (int axis = 0; axis < layout.shape().rank(); axis++) {
                axes.add(random.nextInt(axes.size() + 1), axis);
            }
            if (random.nextBoolean()) {
                layout = layout.transpose(axes);
            }
            if (random.nextBoolean()) {
                layout = layout.reverse(List.of(random.nextInt(layout.shape().rank())));
            }
            Optional<Layout> view = layout.reshape(Shape.of(shapes[random.nextInt(shapes.length)]));
            if (view.isPresent()) {
                views++;
                assertThat(positions(view.get())).isEqualTo(positions(layout));
            }
        }
        assertThat(views).isGreaterThan(500);
    }

    @Test
    void rowMajorIgnoresAxesOfSizeOne() {
        assertThat(new Layout(DType.F32, Shape.of(1, 4, 1), 0, List.of(77L, 1L, 9L)).isRowMajor())
                .isTrue();
        assertThat(rowMajor(4, 4).transpose(List.of(1, 0)).isRowMajor()).isFalse();
    }

    @Test
    void collapseMergesAxesThatAllOperandsStepThroughAsOne() {
        Layout x = rowMajor(2, 1, 3, 4);
        Layout bias = rowMajor(4).broadcast(x.shape(), List.of(3));
        Layout column = rowMajor(2, 1, 3, 1).broadcast(x.shape(), List.of(0, 1, 2, 3));
        assertThat(Layout.collapse(x.shape(), List.of(x))).isEqualTo(Shape.of(24));
        assertThat(Layout.collapse(x.shape(), List.of(x, bias))).isEqualTo(Shape.of(6, 4));
        assertThat(Layout.collapse(x.shape(), List.of(x, bias, column))).isEqualTo(Shape.of(6, 4));
        assertThat(Layout.collapse(
                        x.shape(), List.of(x, x.transpose(List.of(0, 1, 2, 3)).reverse(List.of(3)))))
                .isEqualTo(Shape.of(6, 4));
        assertThat(Layout.collapse(Shape.SCALAR, List.of())).isEqualTo(Shape.of(1));
    }
}
