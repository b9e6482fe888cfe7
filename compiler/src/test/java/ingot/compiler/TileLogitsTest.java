package ingot.compiler;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.autodiff.Gradients;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.CrossEntropy;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TileLogitsTest {
    private static final int TIME = 3;
    private static final int CLASSES = 11;

    @ParameterizedTest
    @CsvSource({"2, 1", "4, 1", "7, 1", "7, 2", "8, 2", "13, 4"})
    void fires(int shards, int block) {
        Graph graph = graph(shards, true);
        long limit = 4L * block * TIME * CLASSES;
        Graph tiled = TileLogits.apply(graph, Set.of(), limit);
        assertThat(tiled.values()).noneMatch(value -> value.op() instanceof Op.Composite);
        assertThat(largest(tiled)).isEqualTo(block * TIME);
        // Loss and gradient of a block share its logits: one product for each block.
        long products = tiled.values().stream()
                .filter(value -> value.op() instanceof Op.Dot && value.shape().dim(-1) == CLASSES)
                .count();
        assertThat(products).isEqualTo((shards + block - 1) / block);
        PassTest.sameBits(graph, tiled);
        assertThat(TileLogits.apply(tiled, Set.of(), limit)).isEqualTo(tiled);
    }

    @Test
    void firesForTheLossAlone() {
        Graph graph = graph(5, false);
        Graph tiled = TileLogits.apply(graph, Set.of(), 4L * 2 * CLASSES);
        assertThat(largest(tiled)).isEqualTo(2);
        PassTest.sameBits(graph, tiled);
    }

    @Test
    void doesNotFireWhenTheLogitsAreSmall() {
        Graph graph = graph(4, true);
        assertThat(TileLogits.apply(graph, Set.of(), 4L * 4 * TIME * CLASSES)).isSameAs(graph);
    }

    @Test
    void doesNotFireWhenTheBackendHasKernels() {
        Graph graph = graph(4, true);
        Set<String> kernels = Set.of("linearCrossEntropy", "linearCrossEntropyGradient");
        assertThat(TileLogits.apply(graph, kernels, 1)).isSameAs(graph);
    }

    @Test
    void doesNotFireInsideOfAShard() {
        Graph graph = graph(1, true);
        Graph same = TileLogits.apply(graph, Set.of(), 1);
        assertThat(same.values()).anyMatch(value -> value.op() instanceof Op.Composite);
    }

    /// Rows of the largest value with one column per class.
    private static int largest(Graph graph) {
        return InlineComposites.apply(graph, Set.of()).values().stream()
                .filter(value -> value.shape().rank() == 2 && value.shape().dim(1) == CLASSES)
                .mapToInt(value -> value.shape().dim(0))
                .max()
                .orElse(0);
    }

    private static Graph graph(int shards, boolean gradient) {
        GraphBuilder b = new GraphBuilder("head");
        Value hidden = b.input("hidden", Type.f32(shards * TIME, 4));
        Value targets = b.input("targets", Type.i32(shards * TIME));
        Value scale = b.input("scale", Type.f32());
        Value weight = b.weight("weight", Type.f32(CLASSES, 4));
        Value losses = CrossEntropy.linearCrossEntropy(b, hidden, weight, targets);
        Value loss = b.sum(b.multiply(losses, scale), 0);
        b.output("loss", loss);
        if (gradient) {
            List<Value> found = Gradients.of(b, loss, List.of(hidden, weight));
            b.output("dHidden", found.get(0));
            b.output("dWeight", found.get(1));
        }
        return ShardBatchSums.shard(b.build(), Set.of("hidden", "targets"), shards);
    }
}
