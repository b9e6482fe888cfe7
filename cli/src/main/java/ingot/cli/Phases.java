package ingot.cli;

import java.util.Locale;
import java.util.function.LongSupplier;

/// Shows the work before the real work: what is done now, how far it is, and how long it took.
final class Phases {
    private static final int BAR = 20;

    private final Screen screen;
    private final LongSupplier nanoseconds;
    private String name = "";
    private long begin;

    Phases(Screen screen, LongSupplier nanoseconds) {
        this.screen = screen;
        this.nanoseconds = nanoseconds;
    }

    /// `total` 0: nobody knows how much there is.
    void at(String phase, long done, long total) {
        if (!phase.equals(name)) {
            end();
            name = phase;
            begin = nanoseconds.getAsLong();
            screen.live(phase + " ...");
        } else if (total > 0) {
            screen.live(text(phase, done, total));
        }
    }

    /// The phase that runs, if any, is over.
    void end() {
        screen.end(false);
        if (!name.isEmpty() && screen.terminal()) {
            String time = Quantity.duration((nanoseconds.getAsLong() - begin) / 1e9);
            screen.line(screen.dim(String.format(Locale.ROOT, "%-70s %8s", name, time)));
        }
        name = "";
    }

    static String text(String phase, long done, long total) {
        return String.format(
                Locale.ROOT,
                "%-24s %s %3d %%",
                phase,
                bar(done, total),
                Math.clamp(100 * done / Math.max(1, total), 0, 100));
    }

    static String bar(long done, long total) {
        int full = Math.clamp(BAR * done / Math.max(1, total), 0, BAR);
        return "━".repeat(full) + "─".repeat(BAR - full);
    }
}
