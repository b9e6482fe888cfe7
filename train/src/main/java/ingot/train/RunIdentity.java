package ingot.train;

import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// What decides the bits of a run, and what it must therefore share with the state that it continues.
///
/// @param settings of the configuration
/// @param data fingerprints of the base, the data and the tokenizer, as far as they are known
record RunIdentity(Map<String, String> settings, Map<String, String> data) {
    static final String TEXT = "the training text";
    static final String TOKENIZER = "the tokenizer";
    static final String BASE = "the base model";

    /// Before every name of a fingerprint, and of no setting.
    private static final String DATA = "the ";

    /// What is known before the data is read.
    static RunIdentity of(RunSettings settings, Trainee trainee) {
        return new RunIdentity(settings.identity(), trainee.origin());
    }

    RunIdentity with(Map<String, String> fingerprints) {
        Map<String, String> all = new LinkedHashMap<>(data);
        all.putAll(fingerprints);
        return new RunIdentity(settings, all);
    }

    /// One `key: value` per line, as a store keeps it.
    String lines() {
        StringBuilder lines = new StringBuilder();
        all().forEach((key, value) ->
                lines.append(key).append(": ").append(value).append('\n'));
        return lines.toString();
    }

    private Map<String, String> all() {
        Map<String, String> all = new LinkedHashMap<>(settings);
        all.putAll(data);
        return all;
    }

    /// The state of a trainer with nothing pending, for a checkpoint.
    Checkpoint.State state(Trainer trainer, Set<String> frozen) {
        return Checkpoint.State.of(trainer.step(), settings, data, trainer.losses(), trainer.store(), frozen);
    }

    /// Refuses a folder with the state of another configuration or another base, before the text is read.
    void refuseOther(RunFolder folder) {
        Checkpoint.State state = Checkpoint.newest(folder.checkpoints());
        if (state != null) {
            refuse(folder, "the configuration", state.identity(), settings);
            Map<String, String> base = new LinkedHashMap<>(state.data());
            base.keySet().retainAll(Set.of(BASE));
            refuse(folder, BASE, base, data);
        }
        if (Streamed.exists(folder.store())) {
            Map<String, String> made = new LinkedHashMap<>();
            Streamed.identity(folder.store()).lines().forEach(line -> {
                int colon = line.indexOf(": ");
                made.put(line.substring(0, Math.max(0, colon)), line.substring(colon + (colon < 0 ? 1 : 2)));
            });
            made.keySet().removeIf(key -> key.startsWith(DATA) && !key.equals(BASE)); // known only after it is read
            refuse(folder, "the configuration", made, all());
        }
    }

    /// Refuses a checkpoint of other data.
    void refuseOtherData(RunFolder folder, Checkpoint.State state) {
        refuse(folder, "the data", state.data(), data);
    }

    private static void refuse(RunFolder folder, String what, Map<String, String> before, Map<String, String> now) {
        if (before.equals(now)) {
            return;
        }
        Set<String> keys = new LinkedHashSet<>(now.keySet());
        keys.addAll(before.keySet());
        List<String> changes = new ArrayList<>();
        for (String key : keys) {
            String old = before.getOrDefault(key, "nothing");
            String young = now.getOrDefault(key, "nothing");
            if (!old.equals(young)) {
                changes.add(key + " is " + young + ", it was " + old);
            }
        }
        throw new IngotException("run: " + folder.path() + " was begun with other settings, " + what + " differs: "
                + String.join("; ", changes) + ". Restore them to resume, or choose another folder with run=…");
    }
}
