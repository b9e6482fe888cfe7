package ingot.cli;

import picocli.CommandLine;
import picocli.CommandLine.Command;

/// The `ingot` command.
@Command(
        name = "ingot",
        version = "ingot 0.1.0-SNAPSHOT",
        mixinStandardHelpOptions = true,
        description = "Trains, runs and inspects models on one machine.")
public final class Main implements Runnable {
    @Override
    public void run() {
        CommandLine.usage(this, System.out);
    }

    public static void main(String[] arguments) {
        System.exit(new CommandLine(new Main()).execute(arguments));
    }
}
