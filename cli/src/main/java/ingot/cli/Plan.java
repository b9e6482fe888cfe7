package ingot.cli;

import ingot.compiler.Backend;
import ingot.cpu.Autotuner;
import ingot.cpu.CpuBackend;
import ingot.cpu.TilePool;
import ingot.nn.Gpt;
import ingot.runtime.WindowPlan;
import ingot.train.MemoryBudget;
import ingot.train.RunConfig;
import ingot.train.StreamCost;
import ingot.train.StreamPlan;
import ingot.train.Traffic;
import ingot.train.TrainingRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/// `ingot plan`.
@Command(
        name = "plan",
        mixinStandardHelpOptions = true,
        header = "Shows what a run with a memory budget would need and do, without running it.",
        description = {
            "",
            "How large the training state is, what of it stays in memory, what is read and",
            "written per step, how long a step takes and what bounds it. Measures the",
            "kernels of the step and the disk of the run folder; reads no text, no weights.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot plan examples/gpt-1b.yaml --memory 512MiB",
            "  ingot plan examples/quickstart.yaml --memory 300MiB train.micro-batch=1"
        })
final class Plan implements Callable<Integer> {
    private final Screen screen;

    @Parameters(index = "0", paramLabel = "CONFIG", description = "The configuration (YAML), or the folder of a run.")
    private String file = "";

    @Parameters(index = "1..*", paramLabel = "key=value", description = "Settings that win over the file.")
    private List<String> overrides = List.of();

    @Mixin
    private MemoryOption memory = new MemoryOption();

    Plan(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() throws IOException {
        RunConfig config = ConfigFile.read(file, memory.with(overrides));
        long bytes =
                config.memory().isEmpty() ? new Machine(Path.of("/")).available() : MemoryBudget.parse(config.memory());
        Gpt model = TrainingRun.model(config, Explain.vocabulary(config));
        screen.live("compiling ...");
        try (TilePool pool = new TilePool(Threads.of(config.threads()))) {
            Backend backend = new CpuBackend(pool, Autotuner.ofMachine());
            StreamPlan plan = TrainingRun.plan(config, model, backend, MemoryBudget.of(bytes));
            screen.live("measuring the processor and the disk ...");
            try (StreamCost.Probe updates = new StreamCost.Probe(config.train().rule(), backend.background());
                    KernelTimes.Probe kernels = new KernelTimes.Probe(plan.program(), backend, pool)) {
                DiskSpeed disk = DiskSpeed.measure(existing(Path.of(config.run())), kernels::busy);
                KernelTimes times = kernels.measure();
                StreamCost cost = updates.measure();
                screen.end(false);
                memory(plan);
                time(config, plan, times, cost, disk);
            }
            return 0;
        } finally {
            screen.end(false);
        }
    }

    /// The run folder, or the nearest folder above it that exists.
    private static Path existing(Path run) {
        Path folder = run.toAbsolutePath();
        while (!Files.isDirectory(folder) && folder.getParent() != null) {
            folder = folder.getParent();
        }
        return folder;
    }

    private void memory(StreamPlan plan) {
        WindowPlan window = plan.window();
        long whole = plan.layout().stateBytes();
        if (plan.layout().frozenBytes() > 0) {
            item(
                    "weights",
                    Quantity.count(plan.layout().elements(false)) + " are trained; "
                            + Quantity.count(plan.layout().elements(true)) + " are frozen ("
                            + Quantity.bytes(plan.layout().frozenBytes()) + ", in no store, read where they lie)");
        }
        item(
                "state",
                Quantity.bytes(whole) + " on disk: weights, gradients"
                        + (plan.layout().moments().isEmpty()
                                ? ""
                                : " and "
                                        + Quantity.count(plan.layout().moments().size(), "moment")));
        item("budget", Quantity.bytes(plan.budget().bytes()) + ", at least " + Quantity.bytes(plan.leastBytes()));
        item("  java", Quantity.bytes(plan.budget().process()));
        item("  working", Quantity.bytes(plan.fixedBytes()) + " for activations, inputs and kernels");
        if (plan.program().memory().spillBytes() > 0) {
            item(
                    "  spilled",
                    Quantity.bytes(plan.program().memory().spillBytes()) + " of activations wait on disk for"
                            + " their backward");
        }
        item("  in flight", Quantity.bytes(plan.ringBytes()) + " of chunks between disk and window");
        item(
                "  window",
                Quantity.bytes(window.bytes()) + ": " + Quantity.bytes(window.pinnedBytes()) + " stay ("
                        + Quantity.count(window.pinned().size(), "array") + "), "
                        + Quantity.bytes(window.bytes() - window.pinnedBytes()) + " for what passes by"
                        + (window.overlap() ? "" : ", too little to read while computing: more memory is faster"));
        item("  unused", Quantity.bytes(plan.budget().bytes() - plan.totalBytes()));
        item(
                "stages",
                Quantity.count(plan.program().stages().size()) + "; state : memory = "
                        + Quantity.digits((double) whole / plan.budget().bytes()) + " : 1");
    }

    private void time(RunConfig config, StreamPlan plan, KernelTimes kernels, StreamCost cost, DiskSpeed disk) {
        long tokens = (long) config.train().batch() * config.model().context();
        double computing = kernels.forward() + kernels.backward();
        double late = plan.traffic().late() / 4.0;
        double trained = plan.layout().elements(false);
        Traffic best = plan.traffic();
        double step = Double.POSITIVE_INFINITY;
        double beside = 0;
        for (int eighths = 0; eighths <= 8; eighths++) {
            double part = eighths / 8.0;
            Traffic traffic = plan.traffic().later(part);
            double forward = beside(traffic.forwardRead() + traffic.forwardWritten(), trained, cost, disk);
            double backward = beside(traffic.backwardRead() + traffic.backwardWritten(), part * late, cost, disk);
            // what runs beside the computation takes its share of the processor
            double slow = 1 / kernels.scaling();
            double seconds = plan.window().overlap()
                    ? traffic.seconds(
                            Math.max(kernels.forward() + slow * forward, forward),
                            Math.max(kernels.backward() + slow * backward, backward),
                            disk.mixed())
                    : computing + forward + backward + (traffic.read() + traffic.written()) / disk.mixed();
            if (seconds < step) {
                step = seconds;
                best = traffic;
                beside = forward + backward;
            }
        }
        step += 2 * disk.flush();
        double transfer = (best.read() + best.written()) / disk.mixed();
        item(
                "traffic",
                Quantity.bytes(best.read()) + " read and " + Quantity.bytes(best.written()) + " written per step");
        item(
                "disk",
                Quantity.bytes(disk.mixed()) + "/s reading and writing at once beside a computation ("
                        + Quantity.bytes(disk.read())
                        + "/s reading, " + Quantity.bytes(disk.write()) + "/s writing), "
                        + Quantity.digits(1000 * disk.flush())
                        + " ms per flush");
        item(
                "compute",
                Quantity.metric(kernels.flops()) + "FLOP per step at " + Quantity.metric(kernels.flops() / computing)
                        + "FLOP/s: forward " + Quantity.duration(kernels.forward()) + ", backward "
                        + Quantity.duration(kernels.backward()) + "; " + Math.round(100 * kernels.timed())
                        + "% of it by kernels that were timed here");
        item(
                "beside it",
                Quantity.duration(beside) + " of one processor: updates at "
                        + Quantity.metric(1 / cost.update()) + "weights/s, checksums at "
                        + Quantity.bytes(1 / cost.checksum()) + "/s, transfers at " + Quantity.bytes(1 / disk.cpu())
                        + "/s; all threads compute " + Quantity.digits(kernels.scaling()) + " times as fast as one");
        item(
                "step",
                Quantity.duration(step) + " for " + Quantity.count(tokens) + " tokens: "
                        + Quantity.duration(computing) + " of computing, " + Quantity.duration(transfer)
                        + " of reading and writing; efficiency " + Quantity.digits(computing / step));
        item(
                "break-even",
                Quantity.count(Math.round(tokens * transfer / computing))
                        + " tokens per step take as long to compute as to read and write");
        item("wear", Quantity.bytes(best.written() / step * 86400) + " written per day");
    }

    /// Seconds of one processor for what is moved and updated.
    private static double beside(double bytes, double updated, StreamCost cost, DiskSpeed disk) {
        return bytes * (cost.checksum() + disk.cpu()) + updated * cost.update();
    }

    private void item(String name, String text) {
        screen.line(String.format(Locale.ROOT, "%-11s %s", name, text));
    }
}
