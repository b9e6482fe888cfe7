package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.runtime.Executor;
import ingot.runtime.PackedWeights;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Programs over packed weights give the bits of the definition, and share what they packed.
class PackedWeightsTest {
    private static final int WIDTH = 160;
    private static final int HIDDEN = 208;

    /// One weight as it is and transposed, and one whose halves are read apart.
    private static Graph graph(int rows) {
        GraphBuilder b = new GraphBuilder("packed");
        Value x = b.input("x", Type.f32(rows, WIDTH));
        Value up = b.weight("up", Type.f32(WIDTH, HIDDEN));
        Value halves = b.weight("halves", Type.f32(2 * WIDTH, WIDTH));
        Value back = b.matmul(b.tanh(b.matmul(x, up)), b.transpose(up, 1, 0));
        Value left = b.matmul(back, b.slice(halves, 0, 0, WIDTH));
        b.output("y", b.matmul(left, b.slice(halves, 0, WIDTH, 2 * WIDTH)));
        return b.build();
    }

    private static Tensor random(Type type, int seed) {
        Random random = new Random(seed);
        Tensor tensor = Tensor.zeros(type);
        for (long i = 0; i < type.shape().elements(); i++) {
            tensor.setFloat(i, (float) random.nextGaussian() / 8);
        }
        return tensor;
    }

    @Test
    void bitsAreThoseOfTheDefinition() {
        Map<String, Tensor> weights =
                Map.of("up", random(Type.f32(WIDTH, HIDDEN), 1), "halves", random(Type.f32(2 * WIDTH, WIDTH), 2));
        try (TilePool pool = new TilePool(2);
                RamStore store = new RamStore();
                PackedWeights packed = new PackedWeights()) {
            weights.forEach((name, tensor) -> {
                Key key = Key.weight(name);
                store.create(key, tensor.type());
                MemorySegment.copy(
                        tensor.data(), 0, store.pin(key), 0, tensor.type().bytes());
                store.release(key, true);
            });
            Backend backend = new CpuBackend(pool);
            for (int rows : new int[] {1, 100, 131}) { // one row reads the weight as it lies
                Tensor x = random(Type.f32(rows, WIDTH), rows);
                Tensor expected =
                        Interpreter.run(graph(rows), Map.of("x", x), weights).get("y");
                try (Executor executor = new Executor(Compiler.inference(graph(rows)), backend, store, packed)) {
                    for (int _ : IntStream.range(0, 2).toArray()) {
                        MemorySegment.copy(
                                x.data(), 0, executor.input("x"), 0, x.type().bytes());
                        executor.run(StageUpdates.NONE);
                        assertThat(executor.output("y").mismatch(expected.data()))
                                .isEqualTo(-1);
                    }
                }
                assertThat(packed.bytes()).isEqualTo(rows == 1 ? 0 : 4L * WIDTH * (2 * HIDDEN + 2 * WIDTH));
            }
        }
    }
}
