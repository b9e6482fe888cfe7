package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.ir.Graph;
import ingot.runtime.Executor;
import ingot.store.WeightStore;
import java.util.function.IntFunction;

/// Opens programs over weights that are there.
@FunctionalInterface
interface Inference {
    /// Opens a graph of as many rows as it should compute at a time: about `wished`, at most `count`. More than
    /// `wished` where every run reads all weights from disk.
    Rows open(IntFunction<Graph> graph, int wished, int count);

    /// A program and the rows that it computes at a time.
    record Rows(Executor executor, int size) implements AutoCloseable {
        @Override
        public void close() {
            executor.close();
        }
    }

    /// Over weights in memory.
    static Inference over(WeightStore store, Backend backend) {
        return (graph, wished, count) -> {
            int rows = Math.clamp(wished, 1, count);
            return new Rows(new Executor(Compiler.inference(graph.apply(rows)), backend, store), rows);
        };
    }

    /// Over the weights of a trainer and in its memory, while nothing is pending.
    static Inference of(Trainer trainer, Backend backend) {
        return trainer.streamPlan() == null
                ? over(trainer.store(), backend)
                : (graph, wished, count) -> streamed(graph, count, trainer, backend);
    }

    /// With as many rows as there is room for, because every run reads all weights.
    private static Rows streamed(IntFunction<Graph> graph, int count, Trainer idle, Backend backend) {
        long room = idle.program().memory().activationBytes();
        int rows = Math.min(idle.rows(), count);
        Program program = Compiler.inference(graph.apply(rows), idle.options());
        for (int attempt = 0; attempt < 3 && rows < count; attempt++) {
            double share = (attempt == 0 ? 1 : 0.8)
                    * room
                    / Math.max(1, program.memory().activationBytes());
            int more = Math.clamp((long) (rows * share), rows, count);
            if (more == rows) {
                break;
            }
            Program larger = Compiler.inference(graph.apply(more), idle.options());
            if (larger.memory().activationBytes() <= room) {
                program = larger;
                rows = more;
            }
        }
        return new Rows(idle.idle(program, backend), rows);
    }
}
