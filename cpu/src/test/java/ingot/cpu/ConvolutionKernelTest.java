package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.Kernel;
import ingot.compiler.Lowered;
import ingot.compiler.Lowering;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

class ConvolutionKernelTest {
    private static final KernelCheck CHECK = KernelCheck.all();

    private final Random random = new Random(23);

    @AfterAll
    static void close() {
        CHECK.close();
    }

    /// The same padding, stride and dilation on all axes.
    private static Op.Window window(int axes, int stride, int pad, int inputDilation, int windowDilation) {
        return new Op.Window(
                Collections.nCopies(axes, stride),
                Collections.nCopies(axes, pad),
                Collections.nCopies(axes, pad),
                Collections.nCopies(axes, inputDilation),
                Collections.nCopies(axes, windowDilation));
    }

    private void same(
            int[] x, int[] kernel, Op.Window window, int groups, int batchGroups, int segments, int products) {
        GraphBuilder b = new GraphBuilder("convolution");
        Value image = b.input("x", Type.f32(x));
        Value weights = b.input("kernel", Type.f32(kernel));
        b.output("y", b.add(new Op.Convolution(image, weights, window, groups, batchGroups, segments)));
        List<Kernel> kernels = Lowering.lower(b.build()).calls().stream()
                .map(Lowered.Call::kernel)
                .filter(Kernel.Convolution.class::isInstance)
                .toList();
        assertThat(kernels).hasSize(products);
        kernels.stream().distinct().forEach(k -> CHECK.same(k, random));
    }

    @Test
    void planes() {
        same(new int[] {2, 5, 13, 11}, new int[] {7, 5, 3, 3}, window(2, 1, 1, 1, 1), 1, 1, 1, 1);
        same(new int[] {3, 40, 9, 9}, new int[] {21, 40, 3, 3}, window(2, 1, 1, 1, 1), 1, 1, 1, 1);
        same(new int[] {1, 3, 17, 19}, new int[] {130, 3, 5, 5}, window(2, 2, 2, 1, 1), 1, 1, 1, 1);
        same(new int[] {2, 4, 15, 15}, new int[] {9, 4, 3, 3}, window(2, 1, 2, 1, 2), 1, 1, 1, 1);
    }

    @Test
    void manyColumnsPerImage() {
        same(new int[] {2, 3, 20, 33}, new int[] {8, 3, 3, 3}, window(2, 1, 1, 1, 1), 1, 1, 1, 1);
    }

    @Test
    void onePixel() {
        same(new int[] {4, 33, 7, 7}, new int[] {65, 33, 1, 1}, window(2, 1, 0, 1, 1), 1, 1, 1, 1);
        same(new int[] {4, 33, 8, 8}, new int[] {10, 33, 1, 1}, window(2, 2, 0, 1, 1), 1, 1, 1, 1);
    }

    @Test
    void linesAndVolumes() {
        same(new int[] {2, 6, 50}, new int[] {5, 6, 7}, window(1, 1, 3, 1, 1), 1, 1, 1, 1);
        same(new int[] {2, 3, 5, 6, 7}, new int[] {4, 3, 2, 3, 2}, window(3, 1, 1, 1, 1), 1, 1, 1, 1);
    }

    @Test
    void groups() {
        same(new int[] {2, 12, 10, 10}, new int[] {9, 4, 3, 3}, window(2, 1, 1, 1, 1), 3, 1, 1, 1);
    }

    @Test
    void depthwise() {
        same(new int[] {2, 6, 14, 14}, new int[] {6, 1, 3, 3}, window(2, 1, 1, 1, 1), 6, 1, 1, 1);
        same(new int[] {2, 6, 15, 15}, new int[] {6, 1, 3, 3}, window(2, 2, 1, 1, 1), 6, 1, 1, 1);
        same(new int[] {2, 6, 30, 30}, new int[] {12, 1, 5, 5}, window(2, 1, 2, 1, 1), 6, 1, 1, 1);
        same(new int[] {1, 3, 64}, new int[] {3, 1, 31}, window(1, 1, 0, 1, 1), 3, 1, 1, 1);
    }

    /// As in the gradient of the input with strides: a product per remainder.
    @Test
    void spreadInput() {
        same(new int[] {2, 5, 6, 6}, new int[] {4, 5, 3, 3}, window(2, 1, 1, 2, 1), 1, 1, 1, 4);
        same(new int[] {1, 2, 5}, new int[] {3, 2, 2}, window(1, 1, 1, 3, 1), 1, 1, 1, 3); // some without any k
    }

    /// As in the gradient of the kernel: the batch is contracted, in segments.
    @Test
    void longChains() {
        same(new int[] {5, 8, 12, 12}, new int[] {7, 8, 10, 10}, window(2, 1, 0, 1, 1), 1, 1, 1, 1);
        same(new int[] {5, 8, 12, 12}, new int[] {7, 8, 10, 10}, window(2, 1, 0, 1, 1), 1, 1, 8, 1);
        same(new int[] {2, 6, 12, 12}, new int[] {4, 6, 10, 10}, window(2, 1, 0, 1, 1), 1, 1, 3, 1);
        same(new int[] {12, 4, 9, 9}, new int[] {6, 4, 7, 7}, window(2, 1, 0, 1, 1), 1, 6, 2, 1); // depthwise
    }
}
