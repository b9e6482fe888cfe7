package ingot.bench;

import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine;

/// A run that cannot be killed: `kill -9` at random moments, until it has been killed often enough.
@CommandLine.Command(
        name = "kill",
        description = "Kills a small streamed run (SIGKILL) at random moments; every run must end with the bits of one"
                + " that nothing stopped.",
        mixinStandardHelpOptions = true)
final class KillBenchmark implements Callable<Integer> {
    private static final long INTERVAL = 5_000_000_000L;

    @CommandLine.Option(names = "--kills", defaultValue = "300", description = "how many")
    private int kills;

    @CommandLine.Option(names = "--steps", defaultValue = "40", description = "steps of every run")
    private int steps;

    @CommandLine.Option(
            names = "--chunk",
            defaultValue = "4096",
            description = "elements of a chunk, a multiple of 4096: the smaller the more writes")
    private int chunk;

    @CommandLine.Option(names = "--seed", defaultValue = "1", description = "decides the moments")
    private long seed;

    @CommandLine.Option(names = "--folder", defaultValue = "target/bench-kill", description = "where the store lies")
    private Path folder = Path.of("");

    private long begin;
    private long printed;

    @Override
    public Integer call() throws IOException {
        Sample.print("%d kills of runs of %d steps, chunks of %d elements; %s", kills, steps, chunk, Sample.load());
        begin = System.nanoTime();
        printed = begin;
        KillLoop.Report end = new KillLoop(folder, steps, chunk, seed, Sample::print).run(kills, this::progress);
        Sample.print(
                "%d kills (%s), %d runs ended, all with SHA-256 %s; %d of %d kills cost a step begun, none more than"
                        + " one; no store was refused or damaged; %.0f s",
                end.kills(), phases(end), end.runs(), end.digest(), end.redone(), end.kills(), seconds());
        return 0;
    }

    private void progress(KillLoop.Report now) {
        if (System.nanoTime() - printed < INTERVAL || now.kills() == 0) {
            return;
        }
        printed = System.nanoTime();
        Sample.print(
                "%4d of %d kills, %3d runs ended, %3d steps redone, %.0f s left",
                now.kills(), kills, now.runs(), now.redone(), seconds() / now.kills() * (kills - now.kills()));
    }

    private static String phases(KillLoop.Report report) {
        return Stream.of(KillLoop.Phase.values())
                .filter(phase -> report.byPhase().containsKey(phase))
                .map(phase -> report.byPhase().get(phase) + " " + phase.text)
                .collect(Collectors.joining(", "));
    }

    private double seconds() {
        return (System.nanoTime() - begin) / 1e9;
    }
}
