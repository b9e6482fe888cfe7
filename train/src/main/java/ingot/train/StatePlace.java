package ingot.train;

import ingot.compiler.Backend;
import ingot.store.StoreLayout;

/// Where the newest state of a run is: in its checkpoints or in its store. When the other place is wanted, it moves
/// there.
final class StatePlace {
    private final RunFolder folder;
    private final Prepared run;
    private final Backend backend;
    private final Streamed settings;
    private final Callback callback;

    StatePlace(RunFolder folder, Prepared run, Backend backend, Streamed settings, Callback callback) {
        this.folder = folder;
        this.run = run;
        this.backend = backend;
        this.settings = settings;
        this.callback = callback;
        StateMove.clean(folder.store());
        StateMove.clean(folder.checkpoints());
    }

    /// Makes sure that the newest state of the run is in its checkpoints: one that is on disk moves there.
    void toMemory() {
        if (!Streamed.exists(folder.store())) {
            return;
        }
        Checkpoint.State state = Checkpoint.newest(folder.checkpoints());
        if (state == null || state.step() < folder.stored()) {
            String phase = "moving the state from disk to memory";
            callback.onPhase(phase, 0, 0);
            try (Trainer trainer =
                    Trainer.streamed(run.task(), run.recipe(), backend, backend.background(), settings)) {
                trainer.flush();
                Checkpoint.save(
                        folder.checkpoints(),
                        run.identity().state(trainer, run.task().start().frozen()),
                        trainer.store(),
                        (done, total) -> callback.onPhase(phase, done, total));
            }
        }
        StateMove.discard(folder.store());
    }

    /// Makes sure that the newest state of the run is in its store: one that was in memory moves there.
    void toDisk(StoreLayout layout) {
        Checkpoint.State state = Checkpoint.newest(folder.checkpoints());
        if (state == null) {
            return;
        }
        if (Streamed.exists(folder.store()) && folder.stored() >= state.step()) {
            StateMove.discard(folder.checkpoints());
            return;
        }
        run.identity().refuseOtherData(folder, state);
        String phase = "moving the state from memory to disk";
        callback.onPhase(phase, 0, 0);
        StateMove.discard(folder.store());
        StateMove.toDisk(
                folder.checkpoints(),
                layout,
                run.task(),
                run.recipe(),
                backend,
                settings,
                (done, total) -> callback.onPhase(phase, done, total));
    }
}
