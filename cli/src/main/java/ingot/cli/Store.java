package ingot.cli;

import ingot.ir.IngotException;
import ingot.store.Progress;
import ingot.store.StoreInspection;
import ingot.store.StoreLayout;
import ingot.store.StoreReport;
import ingot.train.Streamed;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// `ingot store`.
@Command(
        name = "store",
        mixinStandardHelpOptions = true,
        synopsisSubcommandLabel = "COMMAND",
        header = "Looks at the state of a run that streams from disk.",
        description = {
            "",
            "A run that streams, with --memory or because its state does not fit, keeps the",
            "weights that it trains, their moments and gradients in RUN/store. These commands",
            "look at them while no run uses them.",
            ""
        },
        commandListHeading = "%nCommands:%n",
        footer = {"", "Examples:", "  ingot store inspect runs/gpt-1b", "  ingot store verify runs/gpt-1b"})
final class Store implements Runnable {
    private static final int WIDTH = 13;

    private final Screen screen;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    Store(Screen screen) {
        this.screen = screen;
    }

    @Override
    public void run() {
        spec.commandLine().usage(screen.out());
    }

    @Command(
            name = "inspect",
            mixinStandardHelpOptions = true,
            header = "Shows what a store holds: steps, room, tensors, generations.",
            description = {
                "",
                "A chunk of a tensor is at generation N when N updates were applied to it; its",
                "gradient is pending until the next update uses it. Reads no tensor data.",
                ""
            })
    int inspect(@Parameters(index = "0", paramLabel = "RUN", description = "The folder of a run.") String run) {
        StoreReport report = StoreInspection.inspect(folder(run));
        item("store", report.file() + ", " + Quantity.bytes(report.fileBytes()) + ", format " + report.version());
        item("made", report.created() + ", id " + Long.toHexString(report.id()));
        StoreLayout layout = report.layout();
        item(
                "state",
                Quantity.count(layout.tensors().size(), "tensor") + ", " + Quantity.bytes(layout.stateBytes())
                        + ": weights, gradients" + (layout.moments().isEmpty() ? "" : ", ")
                        + String.join(", ", layout.moments()) + "; chunks of "
                        + Quantity.bytes(4.0 * layout.chunkElements()));
        if (report.sequence() >= 0) {
            item(
                    "committed",
                    Quantity.count(Streamed.steps(report.note()), "step") + ", commit " + report.sequence()
                            + (report.durable() ? "" : ", WITHOUT flushes and checksums"));
        }
        for (StoreReport.Slot slot : report.superblocks()) {
            item(
                    "superblock " + slot.number(),
                    slot.damage().isEmpty()
                            ? "commit " + slot.sequence() + " of " + slot.time()
                            : String.join("; ", slot.damage()));
        }
        extents(report.extents());
        List<String> settings = report.identity().lines().toList();
        for (int i = 0; i < settings.size(); i++) {
            item(i == 0 ? "belongs to" : "", settings.get(i));
        }
        tensors(report.tensors(), layout);
        return report.sequence() >= 0 ? 0 : Main.FAILED;
    }

    private void extents(List<StoreReport.Room> extents) {
        for (StoreReport.Room room : extents) {
            item(
                    "extents",
                    Quantity.count(room.count()) + " of " + Quantity.bytes(room.extentBytes()) + ", "
                            + Quantity.count(room.used()) + " used, " + Quantity.count(room.free()) + " free");
        }
    }

    private void tensors(List<StoreReport.TensorRows> tensors, StoreLayout layout) {
        if (tensors.isEmpty()) {
            return;
        }
        int width =
                tensors.stream().mapToInt(rows -> rows.name().length()).max().orElse(0);
        String row = "%-" + width + "s  %-18s %7s  %-20s %9s  %10s";
        screen.line("");
        screen.line(screen.bold(
                String.format(Locale.ROOT, row, "tensor", "type", "chunks", "generation", "gradients", "on disk")));
        for (StoreReport.TensorRows rows : tensors) {
            screen.line(String.format(
                    Locale.ROOT,
                    row,
                    rows.name(),
                    rows.type(),
                    Quantity.count(rows.chunks()),
                    generations(rows, layout.frozen(layout.index(rows.name()))),
                    Quantity.count(rows.gradients()),
                    Quantity.bytes(rows.bytes())));
        }
    }

    /// `41`, `40 to 41`, `41, 3 never` for chunks that were never updated.
    private static String generations(StoreReport.TensorRows rows, boolean frozen) {
        if (frozen) {
            return "frozen";
        }
        if (rows.newest() == 0) {
            return "first values";
        }
        String range = rows.oldest() == rows.newest() ? "" + rows.newest() : rows.oldest() + " to " + rows.newest();
        return range + (rows.untouched() == 0 ? "" : ", " + Quantity.count(rows.untouched()) + " never");
    }

    @Command(
            name = "verify",
            mixinStandardHelpOptions = true,
            header = "Reads all of a store and compares the checksums.",
            description = {"", "Names all damage by tensor and chunk. Exit status 1 if there is any.", ""})
    int verify(@Parameters(index = "0", paramLabel = "RUN", description = "The folder of a run.") String run) {
        Path folder = folder(run);
        List<StoreReport.Damage> damage;
        try (Reading reading = new Reading(screen, "verifying")) {
            damage = StoreInspection.verify(folder, reading);
        }
        list(damage);
        if (damage.isEmpty()) {
            screen.line("All is as it was written.");
            return 0;
        }
        screen.line(Quantity.count(damage.size(), "damaged place") + ". " + advice(run, damage));
        return Main.FAILED;
    }

    private static String advice(String run, List<StoreReport.Damage> damage) {
        return damage.stream().allMatch(each -> each.tensor().isEmpty())
                ? "The newest commit is whole if a run goes on from it; repair the rest with `" + Shell.ingot()
                        + " store scrub " + Shell.quote(run) + "`"
                : "A run that reads this will stop and name it. Nothing holds a second copy of a tensor: begin anew in"
                        + " another folder, from model.safetensors if the run has written it";
    }

    @Command(
            name = "scrub",
            mixinStandardHelpOptions = true,
            header = "Verifies a store and repairs what it holds twice.",
            description = {
                "",
                "A damaged superblock or index is written anew from the good one. Exit status",
                "1 if something is damaged that has no second copy.",
                ""
            })
    int scrub(@Parameters(index = "0", paramLabel = "RUN", description = "The folder of a run.") String run) {
        Path folder = folder(run);
        StoreReport.Scrub scrub;
        try (Reading reading = new Reading(screen, "verifying")) {
            scrub = StoreInspection.scrub(folder, reading);
        }
        scrub.repaired().forEach(damage -> screen.line("repaired: " + damage.message()));
        list(scrub.remaining());
        List<String> summary = new ArrayList<>();
        if (!scrub.repaired().isEmpty()) {
            summary.add(Quantity.count(scrub.repaired().size(), "place") + " repaired.");
        }
        summary.add(
                scrub.remaining().isEmpty()
                        ? "All is as it was written."
                        : Quantity.count(scrub.remaining().size(), "damaged place") + " without a second copy.");
        screen.line(String.join(" ", summary));
        return scrub.remaining().isEmpty() ? 0 : Main.FAILED;
    }

    private void list(List<StoreReport.Damage> damage) {
        damage.forEach(each -> screen.line("damaged: " + each.message()));
    }

    private void item(String name, String text) {
        screen.line(String.format(Locale.ROOT, "%-" + WIDTH + "s %s", name, text));
    }

    /// The folder of a run's store, which must be there.
    private static Path folder(String run) {
        Path store = Streamed.folder(ConfigFile.folder(run));
        if (!Files.isDirectory(store)) {
            throw new IngotException(run + ": no store in it; expected the folder of a run whose state is on disk"
                    + " (`ingot train CONFIG --memory SIZE`)");
        }
        return store;
    }

    /// Shows how far the reading of a store is.
    private static final class Reading implements Progress, AutoCloseable {
        private final Phases phases;
        private final String name;

        Reading(Screen screen, String name) {
            phases = new Phases(screen, System::nanoTime);
            this.name = name;
            phases.at(name, 0, 0);
        }

        @Override
        public void at(long done, long total) {
            phases.at(name, done, total);
        }

        @Override
        public void close() {
            phases.end();
        }
    }
}
