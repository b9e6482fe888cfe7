package ingot.cli;

import java.io.PrintStream;
import java.util.function.LongSupplier;

/// Where a command prints: results and progress to `out`, warnings and errors to `err`.
///
/// On a terminal one live line is rewritten in place below everything else; elsewhere (a file, a pipe, a CI log) its
/// newest text is printed as a plain line every few seconds. Safe to use from several threads: a signal may print too.
final class Screen {
    private static final long INTERVAL = 5_000_000_000L;
    private static final String REWRITE = "\r\033[K";

    private final PrintStream out;
    private final PrintStream err;
    private final boolean terminal;
    private final boolean styled;
    private final LongSupplier nanoseconds;
    private String live = "";
    private String pending = "";
    private boolean printed;
    private long last;

    /// @param terminal `out` is a terminal that understands control sequences
    /// @param styled bold and dim text
    Screen(PrintStream out, PrintStream err, boolean terminal, boolean styled, LongSupplier nanoseconds) {
        this.out = out;
        this.err = err;
        this.terminal = terminal;
        this.styled = styled;
        this.nanoseconds = nanoseconds;
    }

    PrintStream out() {
        return out;
    }

    PrintStream err() {
        return err;
    }

    /// Prints a line above the live one.
    synchronized void line(String text) {
        clear();
        out.println(text);
        redraw();
    }

    /// Prints part of a line; there must be no live line.
    synchronized void print(String text) {
        out.print(text);
        out.flush();
    }

    synchronized void warn(String text) {
        clear();
        out.flush();
        err.println(text);
        err.flush();
        redraw();
    }

    /// Replaces the live line.
    synchronized void live(String text) {
        if (terminal) {
            live = text;
            redraw();
        } else if (!printed || nanoseconds.getAsLong() - last >= INTERVAL) {
            printed = true;
            last = nanoseconds.getAsLong();
            pending = "";
            out.println(text);
            out.flush();
        } else {
            pending = text;
        }
    }

    /// Ends the live line: its last text stays as a line if `keep`, and the next one is printed at once.
    synchronized void end(boolean keep) {
        if (!live.isEmpty()) {
            out.print(keep ? System.lineSeparator() : REWRITE);
        } else if (keep && !pending.isEmpty()) {
            out.println(pending);
        }
        live = "";
        pending = "";
        printed = false;
        out.flush();
    }

    boolean terminal() {
        return terminal;
    }

    String bold(String text) {
        return styled ? "\033[1m" + text + "\033[0m" : text;
    }

    String dim(String text) {
        return styled ? "\033[2m" + text + "\033[0m" : text;
    }

    private void clear() {
        if (!live.isEmpty()) {
            out.print(REWRITE);
        }
    }

    /// Without line wrap the terminal itself cuts what is too long for it, at any width.
    private void redraw() {
        if (!live.isEmpty()) {
            out.print(REWRITE + "\033[?7l" + live + "\033[?7h");
        }
        out.flush();
    }
}
