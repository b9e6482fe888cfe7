package ingot.train;

import ingot.ir.IngotException;
import ingot.store.Durable;
import ingot.store.StoreInspection;
import ingot.store.StoreReport;
import java.io.IOException;
import java.nio.file.Path;

/// The folder of a run: where its files are, and how far the state in it is.
record RunFolder(Path path) {
    static RunFolder of(RunSettings settings) {
        return new RunFolder(Path.of(settings.run()));
    }

    /// Where the state is if it does not stream.
    Path checkpoints() {
        return path.resolve("resume");
    }

    /// Where the state is if it streams.
    Path store() {
        return Streamed.folder(path);
    }

    Path tokenizer() {
        return path.resolve("tokenizer.json");
    }

    /// True if there is a state. Without one, other files may be left from other settings.
    boolean begun() {
        return Checkpoint.newest(checkpoints()) != null || Streamed.exists(store());
    }

    /// Steps that the store holds, beside checkpoints.
    long stored() {
        StoreReport report = StoreInspection.inspect(store());
        if (report.sequence() < 0) {
            throw new IngotException("run: " + path + " has checkpoints in " + checkpoints() + " and a store that is"
                    + " damaged: see `ingot store verify`; to go on from the checkpoints delete " + store());
        }
        return Streamed.steps(report.note());
    }

    void write(String name, String content) {
        try {
            Durable.write(path.resolve(name), content);
        } catch (IOException e) {
            throw new IngotException("run: cannot write " + path.resolve(name) + ": " + e.getMessage(), e);
        }
    }
}
