package ingot.bench;

import picocli.CommandLine;

/// `--threads N`.
final class ThreadsOption {
    @CommandLine.Option(names = "--threads", defaultValue = "0", description = "0: all cores")
    private int wanted;

    int count() {
        return wanted == 0 ? Runtime.getRuntime().availableProcessors() : wanted;
    }
}
