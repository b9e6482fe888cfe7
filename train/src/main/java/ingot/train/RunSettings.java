package ingot.train;

import java.util.SequencedMap;

/// What every run says, whatever it trains.
public sealed interface RunSettings permits RunConfig, FineTuneConfig {
    /// Folder of the run.
    String run();

    /// Threads of the backend; 0 means one per core. Never changes a bit.
    int threads();

    /// What the process may use, such as `1GiB`; empty: what the machine has. Never changes a bit.
    String memory();

    RunConfig.TrainConfig train();

    /// The whole configuration, defaults included; parses back to an equal record.
    String toYaml();

    /// The keys that decide the bits of a run, `train.batch` → `16`: what a resumed run must share with the one that
    /// began.
    SequencedMap<String, String> identity();
}
