package ingot.bench;

import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.store.RamStore;
import ingot.train.Digest;
import ingot.train.Trainer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// One SHA-256 over weights, moments and losses, whatever the machine does: threads, micro-batches, vector widths.
///
/// Every row is a JVM of its own, because vector width is decided when a JVM starts.
@CommandLine.Command(
        name = "bits",
        description =
                "Trains a 2-layer GPT under many settings and compares the SHA-256 of weights, moments and losses.",
        mixinStandardHelpOptions = true)
final class BitsBenchmark implements Callable<Integer> {
    @CommandLine.Option(names = "--steps", defaultValue = "50", description = "steps of every run")
    private int steps;

    @CommandLine.Option(names = "--one", hidden = true, arity = "2", description = "threads and micro-batch of one run")
    private List<Integer> one = List.of();

    @Override
    public Integer call() throws IOException {
        if (!one.isEmpty()) {
            System.out.println("digest " + digest(one.get(0), one.get(1)));
            return 0;
        }
        Map<String, List<String>> machines = new LinkedHashMap<>();
        machines.put("widest vectors", List.of("--add-modules", "jdk.incubator.vector"));
        machines.put("AVX2", List.of("--add-modules", "jdk.incubator.vector", "-XX:UseAVX=2"));
        machines.put("no vector module", List.of());
        TreeSet<String> digests = new TreeSet<>();
        Sample.print("%-18s %-8s %-12s %s", "machine", "threads", "micro-batch", "SHA-256 after " + steps + " steps");
        for (Map.Entry<String, List<String>> machine : machines.entrySet()) {
            for (int threads : new int[] {1, 2, 3}) {
                for (int microBatch : new int[] {1, 2, GptSize.TOY.batch}) {
                    String digest = child(machine.getValue(), threads, microBatch);
                    digests.add(digest);
                    Sample.print("%-18s %-8d %-12d %s", machine.getKey(), threads, microBatch, digest);
                }
            }
        }
        Sample.print(digests.size() == 1 ? "all equal" : digests.size() + " DIFFERENT digests");
        return digests.size() == 1 ? 0 : 1;
    }

    private String digest(int threads, int microBatch) {
        try (TilePool pool = new TilePool(threads);
                RamStore store = new RamStore();
                Trainer trainer =
                        new Trainer(GptSize.TOY.task(), GptSize.TOY.recipe(microBatch), new CpuBackend(pool), store)) {
            StringBuilder losses = new StringBuilder();
            for (int i = 0; i < steps; i++) {
                losses.append(Float.floatToRawIntBits(trainer.next().loss())).append(' ');
            }
            trainer.flush();
            return Digest.of(store, losses.toString());
        }
    }

    private String child(List<String> flags, int threads, int microBatch) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx512m", "-XX:+UseSerialGC"));
        command.addAll(flags);
        command.addAll(List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName(),
                "bits",
                "--steps",
                Integer.toString(steps),
                "--one",
                Integer.toString(threads),
                Integer.toString(microBatch)));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return output.lines()
                .filter(line -> line.startsWith("digest "))
                .map(line -> line.substring("digest ".length()))
                .findFirst()
                .orElseThrow(() -> new IngotException("bench: a run failed: " + output));
    }
}
