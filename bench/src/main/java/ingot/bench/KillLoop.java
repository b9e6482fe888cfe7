package ingot.bench;

import ingot.ir.IngotException;
import ingot.store.Progress;
import ingot.store.StoreInspection;
import ingot.store.StoreReport;
import ingot.train.Streamed;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/// Kills a training run again and again, at random moments, and looks at what is left.
///
/// After every kill the store must be whole and must open, at the last step that was committed, and at the end the run
/// must have the bits of one in memory that nothing stopped.
final class KillLoop {
    private static final List<String> FLAGS =
            List.of("-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx256m");
    private static final int KILLED = 128 + 9; // SIGKILL
    private static final long CREATION_NANOS = 5_000_000;
    private static final int MOST_STEPS_BETWEEN_KILLS = 16;

    private final Path folder;
    private final int steps;
    private final int chunkElements;
    private final Random random;
    private final Consumer<String> notes;
    private final Map<Phase, Integer> kills = new EnumMap<>(Phase.class);
    private final TreeSet<String> warnings = new TreeSet<>();
    private int runs;
    private int redone;
    private String expected = "";
    private long budget;

    // How long things take, as seen last.
    private long openNanos = 1_000_000_000;
    private long stepNanos = 50_000_000;
    private long endNanos = 100_000_000;

    // The run under way.
    private boolean made;
    private long committed;
    private boolean inFlight;

    /// What a run was doing.
    enum Phase {
        START("before it touched the store"),
        CREATION("while the store was made"),
        OPENING("while it was opened"),
        STEP("in a step or its commit"),
        FLUSH("in the last flush"),
        END("after the digest");

        final String text;

        Phase(String text) {
            this.text = text;
        }
    }

    /// When to kill: some time after a line of the run, or after its store's file is there.
    private record Moment(String line, long nanos) {
        static final String FILE = "file";
        static final Moment NEVER = new Moment("never", 0);
    }

    /// What has happened so far.
    ///
    /// @param redone steps that were begun and not committed when the run was killed
    record Report(int kills, Map<Phase, Integer> byPhase, int runs, int redone, String digest) {}

    /// @param notes told about warnings of the runs
    KillLoop(Path folder, int steps, int chunkElements, long seed, Consumer<String> notes) {
        this.folder = folder;
        this.steps = steps;
        this.chunkElements = chunkElements;
        this.notes = notes;
        random = new Random(seed);
    }

    /// Kills so often and lets the last run end; fails with the first difference and leaves its store where it is.
    Report run(int target, Consumer<Report> progress) throws IOException {
        delete();
        reference();
        delete();
        while (report().kills() < target) {
            attempt(moment());
            progress.accept(report());
        }
        if (made || runs == 0) {
            attempt(Moment.NEVER);
        }
        delete();
        return report();
    }

    Report report() {
        return new Report(kills.values().stream().mapToInt(n -> n).sum(), Map.copyOf(kills), runs, redone, expected);
    }

    private void reference() throws IOException {
        List<String> lines = new ArrayList<>();
        Process process = ChildJvm.start(FLAGS, KilledRun.class, arguments("reference"));
        int status = follow(process, lines::add);
        budget = Long.parseLong(value(lines, "least "));
        expected = value(lines, "digest ");
        if (status != 0) {
            throw new IngotException("bench: the run in memory failed: " + String.join("\n", lines));
        }
    }

    private static String value(List<String> lines, String key) {
        return lines.stream()
                .filter(line -> line.startsWith(key))
                .map(line -> line.substring(key.length()))
                .findFirst()
                .orElseThrow(() -> new IngotException("bench: the run in memory failed: " + String.join("\n", lines)));
    }

    private List<String> arguments(String mode) {
        return List.of(mode, Integer.toString(steps), Integer.toString(chunkElements), folder.toString(), budget + "");
    }

    /// Most kills are in steps; enough are where there is less time for them.
    private Moment moment() {
        double dice = random.nextDouble();
        if (committed == steps) {
            return dice < 0.5 ? Moment.NEVER : after(dice < 0.6 ? "begin" : "flush", dice < 0.6 ? openNanos : endNanos);
        }
        if (!made && random.nextBoolean()) {
            return after(Moment.FILE, CREATION_NANOS);
        }
        if (dice < 0.2) {
            return dice < 0.1 ? after("begin", openNanos) : after("flush", endNanos);
        }
        long step = committed + random.nextLong(Math.min(MOST_STEPS_BETWEEN_KILLS, steps - committed));
        return after("step " + step, stepNanos);
    }

    private Moment after(String line, long nanos) {
        return new Moment(line, random.nextLong(nanos + nanos / 10));
    }

    /// One process, from its start to its end.
    private void attempt(Moment moment) throws IOException {
        Process process = ChildJvm.start(FLAGS, KilledRun.class, arguments("killed"));
        CountDownLatch due = new CountDownLatch(moment.line().equals(Moment.FILE) ? 0 : 1);
        Thread killer = new Thread(() -> killAt(moment, due, process), "killer");
        killer.setDaemon(true);
        killer.start();
        Lines lines = new Lines(moment.line(), due);
        int status = follow(process, lines);
        due.countDown();
        if (status != 0 && status != KILLED) {
            throw failure("the run did not go on, exit status " + status, lines);
        }
        lines.check();
        if (status == KILLED) {
            kills.merge(lines.phase, 1, Integer::sum);
            checkStore(lines);
            return;
        }
        if (lines.phase != Phase.END) {
            throw failure("the run ended without a digest", lines);
        }
        runs++;
        delete();
    }

    private void killAt(Moment moment, CountDownLatch due, Process process) {
        try {
            due.await();
            while (moment.line().equals(Moment.FILE) && process.isAlive() && !Files.exists(stateFile())) {
                TimeUnit.MICROSECONDS.sleep(200);
            }
            TimeUnit.NANOSECONDS.sleep(moment.nanos());
            process.toHandle().destroyForcibly(); // `Process` would also close what the run has said
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static int follow(Process process, Consumer<String> lines) throws IOException {
        try (BufferedReader reader =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                lines.accept(line);
            }
            return process.waitFor();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IngotException("bench: interrupted", e);
        } finally {
            process.destroyForcibly();
        }
    }

    /// The lines of a process, as they come.
    private final class Lines implements Consumer<String> {
        private final String awaited;
        private final CountDownLatch due;
        private final List<String> all = new ArrayList<>();
        private final List<String> wrong = new ArrayList<>();
        private Phase phase = Phase.START;
        private long since;

        Lines(String awaited, CountDownLatch due) {
            this.awaited = awaited;
            this.due = due;
        }

        @Override
        public void accept(String line) {
            if (line.equals(awaited)) {
                due.countDown();
            }
            all.add(line);
            long now = System.nanoTime();
            String[] words = line.split(" ", 2);
            switch (words[0]) {
                case "begin" -> phase = made ? Phase.OPENING : Phase.CREATION;
                case "open" -> {
                    phase = Phase.STEP;
                    openNanos = now - since;
                    open(Long.parseLong(words[1]));
                }
                case "step" -> inFlight = true;
                case "committed" -> {
                    stepNanos = now - since;
                    inFlight = false;
                    committed = Long.parseLong(words[1]);
                }
                case "flush" -> phase = Phase.FLUSH;
                case "digest" -> {
                    phase = Phase.END;
                    endNanos = now - since;
                    if (!words[1].equals(expected)) {
                        wrong.add("SHA-256 " + words[1] + ", expected " + expected);
                    }
                }
                case "warning" -> {
                    if (warnings.add(words[1])) {
                        notes.accept("warning: " + words[1]);
                    }
                }
                default -> {} // of the JVM, or a stack trace: the exit status tells
            }
            since = now;
        }

        private void open(long at) {
            long most = committed + (inFlight ? 1 : 0);
            if (at < committed || at > most) {
                wrong.add("it goes on at step " + at + ", expected " + committed + (inFlight ? " or " + most : ""));
            }
            redone += inFlight && at == committed ? 1 : 0;
            made = true;
            committed = at;
            inFlight = false;
        }

        void check() {
            if (!wrong.isEmpty()) {
                throw failure(String.join("; ", wrong), this);
            }
        }
    }

    /// Everything that the newest commit refers to must have its checksum.
    private void checkStore(Lines lines) {
        if (!Streamed.exists(folder)) {
            if (made) {
                throw failure("the store is gone", lines);
            }
            return;
        }
        made = true;
        for (StoreReport.Damage damage : StoreInspection.verify(folder, Progress.NONE)) {
            if (!damage.tensor().isEmpty()) {
                throw failure(damage.message(), lines);
            }
            notes.accept("after a kill: " + damage.message());
        }
    }

    private IngotException failure(String what, Lines lines) {
        return new IngotException("bench: kill " + report().kills() + " (" + lines.phase.text + "), run " + (runs + 1)
                + ": " + what + "; the store is kept in " + folder + ", the last process said:\n"
                + String.join("\n", lines.all.subList(Math.max(0, lines.all.size() - 40), lines.all.size())));
    }

    private Path stateFile() {
        return folder.resolve("state.ingot");
    }

    /// A new run begins with nothing.
    private void delete() throws IOException {
        made = false;
        committed = 0;
        inFlight = false;
        Folders.delete(folder);
    }
}
