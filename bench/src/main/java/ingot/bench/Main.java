package ingot.bench;

import ingot.ir.IngotException;
import picocli.CommandLine;

/// The `ingot bench` command: figures that a reader can repeat, as ratios within one run.
@CommandLine.Command(
        name = "ingot bench",
        description = "Measures Ingot on this machine, against the machine's own peaks and against peers.",
        mixinStandardHelpOptions = true,
        subcommands = {
            GemmBenchmark.class,
            ConvolutionBenchmark.class,
            MapBenchmark.class,
            TrainBenchmark.class,
            InferBenchmark.class,
            ProfileBenchmark.class,
            StreamBenchmark.class,
            ForwardBenchmark.class,
            BitsBenchmark.class,
            KillBenchmark.class,
            CompileBenchmark.class
        })
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        CommandLine line = new CommandLine(new Main())
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setExecutionExceptionHandler((e, command, _) -> {
                    if (!(e instanceof IngotException)) {
                        throw e;
                    }
                    command.getErr().println("error: " + e.getMessage());
                    return 1;
                });
        System.exit(arguments.length == 0 ? line.execute("--help") : line.execute(arguments));
    }
}
