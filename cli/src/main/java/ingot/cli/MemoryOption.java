package ingot.cli;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// `--memory SIZE`, which stands for the setting `memory` and wins over it.
final class MemoryOption {
    @Option(
            names = "--memory",
            paramLabel = "SIZE",
            description = {
                "What this process may use of memory in all, such as 1GiB. The",
                "training state lies on disk and streams through it. Without it:",
                "all in memory if it fits, else through what the machine has."
            })
    private @Nullable String size;

    /// The settings and this one.
    List<String> with(List<String> settings) {
        List<String> all = new ArrayList<>(settings);
        if (size != null) {
            all.add("memory=" + size);
        }
        return all;
    }

    /// The words it takes on a command line.
    List<String> words() {
        return size == null ? List.of() : List.of("--memory", Shell.quote(size));
    }
}
