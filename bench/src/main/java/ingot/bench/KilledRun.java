package ingot.bench;

import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.store.RamStore;
import ingot.train.Digest;
import ingot.train.MemoryBudget;
import ingot.train.Streamed;
import ingot.train.Trainer;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;

/// The process that `bench kill` kills: a toy run that says what it is about to do, a flushed line for each.
///
///     begin            the store is opened, or made
///     open N           N steps were committed before
///     step N           step N begins
///     committed N      N steps are committed
///     flush            the last update is applied
///     digest SHA       of weights, moments and losses
///
/// Or the run that it is compared with: in memory, with the least memory that would do on disk.
///
///     least N          bytes of the smallest budget
///     digest SHA
final class KilledRun {
    private KilledRun() {}

    /// `reference STEPS CHUNK FOLDER` or `killed STEPS CHUNK FOLDER BYTES`.
    public static void main(String[] arguments) {
        int steps = Integer.parseInt(arguments[1]);
        int chunkElements = Integer.parseInt(arguments[2]);
        Path folder = Path.of(arguments[3]);
        try (TilePool pool = new TilePool(1)) {
            CpuBackend backend = new CpuBackend(pool);
            switch (arguments[0]) {
                case "reference" -> reference(backend, steps, chunkElements, folder);
                case "killed" -> killed(backend, steps, chunkElements, folder, Long.parseLong(arguments[4]));
                default -> throw new IllegalArgumentException(List.of(arguments).toString());
            }
        }
    }

    private static void reference(CpuBackend backend, int steps, int chunkElements, Path folder) {
        long bytes = 1L << 30;
        // with less memory the program is another, which needs still less
        for (long before = Long.MAX_VALUE; bytes < before; ) {
            before = bytes;
            try (Trainer trainer = open(backend, chunkElements, folder, bytes)) {
                bytes = Objects.requireNonNull(trainer.streamPlan()).leastBytes();
            }
        }
        say("least " + bytes);
        try (RamStore store = new RamStore();
                Trainer trainer = new Trainer(GptSize.TINY.task(), GptSize.TINY.recipe(0), backend, store)) {
            while (trainer.step() < steps) {
                trainer.next();
            }
            trainer.flush();
            say("digest " + Digest.of(store, trainer.losses()));
        }
    }

    private static void killed(CpuBackend backend, int steps, int chunkElements, Path folder, long bytes) {
        say("begin");
        try (Trainer trainer = open(backend, chunkElements, folder, bytes)) {
            say("open " + trainer.step());
            while (trainer.step() < steps) {
                say("step " + trainer.step());
                trainer.next();
                say("committed " + trainer.step());
            }
            say("flush");
            trainer.flush();
            say("digest " + Digest.of(trainer.store(), trainer.losses()));
        }
    }

    private static Trainer open(CpuBackend backend, int chunkElements, Path folder, long bytes) {
        return Trainer.streamed(
                GptSize.TINY.task(),
                GptSize.TINY.recipe(0),
                backend,
                backend.background(),
                new Streamed(
                        folder,
                        MemoryBudget.offHeap(bytes),
                        "bench: kill\n",
                        chunkElements,
                        true,
                        warning -> say("warning " + warning)));
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
