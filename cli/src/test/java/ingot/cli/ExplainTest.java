package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.ir.DType;
import ingot.ir.Shape;
import ingot.ir.Type;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ExplainTest {
    @TempDir
    Path folder;

    private String config;

    @BeforeEach
    void prepare() throws IOException {
        config = Files.writeString(folder.resolve("a.yaml"), """
            run: '%s'
            model: {layers: 3, width: 8, heads: 2, context: 16}
            data: {corpus: 'maven:nobody:nothing:1'}
            tokenizer: {vocabulary: 300}
            train: {batch: 4, micro-batch: 2}
            """.formatted(folder.resolve("run")))
                .toString();
    }

    @Test
    void theOverviewNeedsNoData() {
        var overview = Invocation.of("explain", config);
        assertThat(overview.err()).isEmpty();
        assertThat(overview.status()).isZero();
        assertThat(overview.out())
                .contains("4 sequences of 16 tokens, 2 at a time")
                .contains("3 attention")
                .contains("h.0", "h.2", "(shared)")
                .contains("matmul", "one step", "FLOP")
                .contains("activations", "moments");
        assertThat(folder.resolve("run")).doesNotExist();
    }

    @Test
    void theDetailsAreAskedFor() {
        assertThat(Invocation.of("explain", config, "--graph").out()).contains("linearCrossEntropy");
        assertThat(Invocation.of("explain", config, "--kernels").out()).contains("kernel 0: ", "reads", "writes");
        assertThat(Invocation.of("explain", config, "--program").out()).contains("load 0", "commit");
    }

    @Test
    void aProductOfMatricesTakesTwoOperationsPerTerm() {
        Layout a = Layout.rowMajor(new Type(DType.F32, Shape.of(5, 2, 3)));
        Layout b = Layout.rowMajor(new Type(DType.F32, Shape.of(5, 3, 7)));
        Layout c = Layout.rowMajor(new Type(DType.F32, Shape.of(5, 2, 7)));
        assertThat(Explain.flops(new Kernel.Matmul(a, b, null, c, 1, Kernel.Matmul.Old.REPLACED)))
                .isEqualTo(2 * 5 * 2 * 3 * 7);
    }
}
