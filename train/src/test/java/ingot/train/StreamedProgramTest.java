package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Weights that pass through a window give the bits of weights in memory.
class StreamedProgramTest {
    private static final int TIME = 6;
    private static final Gpt MODEL = Gpt.of(GptConfig.of(20_000, TIME, 256, 2, 4));

    private final Backend backend = Backends.tested();
    private final Graph graph = MODEL.lossGraph(1, TIME, false);

    @TempDir
    Path folder;

    private StreamedProgram open(String name, long bytes) {
        return StreamedProgram.open(
                graph,
                MODEL.parameters(),
                Start.SEEDED,
                5,
                MemoryBudget.offHeap(bytes),
                backend,
                Backends.background(),
                folder.resolve(name),
                UnaryOperator.identity(),
                warning -> {});
    }

    private static float loss(Executor executor) {
        for (int t = 0; t < TIME; t++) {
            executor.input("tokens").setAtIndex(ValueLayout.JAVA_INT, t, 3_000 * t);
            executor.input("targets").setAtIndex(ValueLayout.JAVA_INT, t, 19_999 - t);
        }
        executor.input("scale").set(ValueLayout.JAVA_FLOAT, 0, 1f / TIME);
        executor.run(StageUpdates.NONE);
        return executor.output("loss").get(ValueLayout.JAVA_FLOAT, 0);
    }

    private float inMemory() {
        try (RamStore store = new RamStore()) {
            InMemoryState.of(
                            new Task(MODEL.parameters(), rows -> graph, java.util.Set.of(), false, (step, into) -> 0),
                            Recipe.of(new Optimizer.Sgd(0, 0), Schedule.constant(1, 0), 1)
                                    .withSeed(5),
                            backend,
                            store)
                    .close();
            try (Executor executor = new Executor(Compiler.inference(graph), backend, store)) {
                return loss(executor);
            }
        }
    }

    @Test
    void anyWindowHasTheBitsOfMemory() {
        float expected = inMemory();
        for (long mebibytes : new long[] {200, 24, 16}) {
            try (StreamedProgram streamed = open("b" + mebibytes, mebibytes << 20)) {
                assertThat(streamed.program().tiles().isEmpty()).isEqualTo(mebibytes == 200);
                assertThat(loss(streamed.executor())).isEqualTo(expected);
                assertThat(loss(streamed.executor())).isEqualTo(expected);
            }
        }
    }

    @Test
    void tooLittleMemoryIsRefusedWithWhatWouldDo() {
        assertThatThrownBy(() -> open("small", 1 << 20))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the budget is 1 MiB")
                .hasMessageContaining("needs about");
    }
}
