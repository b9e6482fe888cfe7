package ingot.cli;

import ingot.cpu.CpuBackend;
import ingot.cpu.Peaks;
import ingot.cpu.TilePool;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/// `ingot doctor`.
@Command(
        name = "doctor",
        mixinStandardHelpOptions = true,
        showDefaultValues = true,
        header = "Looks at this machine: what Ingot finds, how fast it is, what would help.",
        description = {"", "Measures for some seconds. Exit status 0 unless Ingot cannot work here.", ""})
final class Doctor implements Callable<Integer> {
    private static final String VECTOR_MODULE = "jdk.incubator.vector";

    private final Screen screen;
    private final List<String> advice = new ArrayList<>();
    private final List<String> faults = new ArrayList<>();

    @Option(names = "--folder", paramLabel = "FOLDER", description = "Where runs are to be written.")
    private Path folder = Path.of("runs");

    Doctor(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        Machine machine = new Machine(Path.of("/"));
        item("Ingot", Version.text());
        item("system", machine.system());
        java();
        try (TilePool pool = new TilePool(Threads.of(0))) {
            processor(machine, new CpuBackend(pool).describe());
            memory(machine);
            speed(pool);
        }
        disk();
        screen.line("");
        faults.forEach(fault -> screen.line("UNUSABLE: " + fault));
        advice.forEach(text -> screen.line("advice: " + text));
        if (faults.isEmpty() && advice.isEmpty()) {
            screen.line("All is well.");
        }
        return faults.isEmpty() ? 0 : Main.FAILED;
    }

    private void item(String name, String text) {
        screen.end(false);
        screen.line(String.format(Locale.ROOT, "%-13s %s", name, text));
    }

    private void java() {
        item(
                "JDK",
                Runtime.version() + ", " + System.getProperty("java.vm.name") + ", " + System.getProperty("java.home"));
        List<String> options = ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(option -> option.startsWith("-X") || option.startsWith("--add-modules"))
                .toList();
        item("JVM options", String.join(" ", options));
    }

    private void processor(Machine machine, String backend) {
        int cores = Runtime.getRuntime().availableProcessors();
        double load = ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
        item("processor", machine.processor());
        item("cores", cores + " for this process" + (load < 0 ? "" : ", load " + Quantity.digits(load)));
        if (load > cores * 0.5) {
            advice.add("other work keeps the cores busy (load " + Quantity.digits(load) + " on " + cores
                    + "): the speeds above are lower than the machine's, and training will be slower");
        }
        boolean module = ModuleLayer.boot().findModule(VECTOR_MODULE).isPresent();
        item("vectors", "the processor has " + list(machine.vectors()));
        item("vector module", VECTOR_MODULE + (module ? " is present" : " is not loaded"));
        item("backend", backend);
        if (!module) {
            advice.add(
                    "without " + VECTOR_MODULE + " everything runs in scalar code: the same bits, many times slower. "
                            + ("off".equals(System.getenv("INGOT_VECTOR"))
                                    ? "INGOT_VECTOR=off asks for it"
                                    : "Start through ./ingot, with a JDK that has this module"));
        }
        item("matrix units", machine.matrixUnits().isEmpty() ? "none" : list(machine.matrixUnits()));
    }

    private static String list(List<String> names) {
        return names.isEmpty() ? "unknown ones" : String.join(", ", names);
    }

    private void memory(Machine machine) {
        OptionalLong limit = machine.memoryLimit();
        OptionalLong total = machine.memory("MemTotal");
        OptionalLong available = machine.memory("MemAvailable");
        List<String> parts = new ArrayList<>();
        total.ifPresent(bytes -> parts.add(Quantity.bytes(bytes)));
        available.ifPresent(bytes -> parts.add(Quantity.bytes(bytes) + " available"));
        parts.add(
                limit.isPresent()
                        ? "control group limit " + Quantity.bytes(limit.getAsLong())
                        : "no control group limit");
        parts.add("Java heap up to " + Quantity.bytes(Runtime.getRuntime().maxMemory()));
        item("memory", String.join(", ", parts));
        long usable = Math.min(available.orElse(Long.MAX_VALUE), limit.orElse(Long.MAX_VALUE));
        if (usable < 1L << 30) {
            advice.add("only " + Quantity.bytes(usable) + " of memory: use small models and a small train.micro-batch");
        }
    }

    private void speed(TilePool pool) {
        screen.live("measuring arithmetic and memory ...");
        Peaks peaks = Peaks.measure(pool);
        int threads = pool.threads();
        item(
                "fma peak",
                Quantity.digits(peaks.fmaPerThread()) + " GFLOP/s on one thread, " + Quantity.digits(peaks.fma())
                        + " GFLOP/s on " + threads);
        item(
                "copy",
                Quantity.digits(peaks.copy()) + " GB/s of memory read and written, on "
                        + Quantity.count(threads, "thread"));
        if (threads > 1 && peaks.fma() < peaks.fmaPerThread() * threads * 0.6) {
            advice.add(threads + " threads compute only " + Quantity.digits(peaks.fma() / peaks.fmaPerThread())
                    + " times as fast as one: they share cores with other work or with each other (hyper-threads)");
        }
    }

    private void disk() {
        Path place = folder.toAbsolutePath();
        while (!Files.isDirectory(place) && place.getParent() != null) {
            place = place.getParent();
        }
        screen.live("measuring the disk ...");
        try {
            DiskSpeed speed = DiskSpeed.measure(place);
            long free = Files.getFileStore(place).getUsableSpace();
            item(
                    "disk",
                    "writes " + Quantity.digits(speed.write() / 1e9) + " GB/s, reads "
                            + Quantity.digits(speed.read() / 1e9) + " GB/s"
                            + (speed.direct() ? " (direct)" : " (through the page cache: reads may be memory's speed)")
                            + ", "
                            + Quantity.bytes(free) + " free, at " + place);
            if (free < 1L << 30) {
                advice.add("little room on the disk of " + place + ": checkpoints of a run take six times the size of"
                        + " the model; choose another folder with run=…");
            }
        } catch (IOException e) {
            item("disk", "cannot write to " + place + ": " + e.getMessage());
            faults.add("runs cannot be written to " + folder + " (" + e.getMessage()
                    + "); make it writable, or choose another folder: ingot doctor --folder F, ingot train …"
                    + " run=F/name");
        }
    }
}
