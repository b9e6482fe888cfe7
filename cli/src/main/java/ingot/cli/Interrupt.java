package ingot.cli;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import sun.misc.Signal;
import sun.misc.SignalHandler;

/// What Ctrl-C and `kill` do while something runs that should end well: the first asks it to stop, the second ends the
/// process at once.
///
/// Signal handlers and not a shutdown hook: once the JVM shuts down it ignores further signals, so with a hook there is
/// no second Ctrl-C, and its exit status is fixed. `sun.misc.Signal` is the only interface of the JDK that offers this;
/// where the signal belongs to someone else (a background job of a shell ignores SIGINT) the handler is simply not
/// installed. Nothing depends on it for safety: `kill -9` and a power cut find a checkpoint that was complete before
/// the old one was removed.
final class Interrupt implements AutoCloseable {
    private static final String[] NAMES = {"INT", "TERM"};

    /// What a signal does; returns false to end the process at once.
    @FunctionalInterface
    interface Handler {
        boolean stop();
    }

    private final AtomicReference<@Nullable String> received = new AtomicReference<>();
    private final SignalHandler[] before = new SignalHandler[NAMES.length];

    private Interrupt(Handler handler) {
        for (int i = 0; i < NAMES.length; i++) {
            try {
                before[i] = Signal.handle(new Signal(NAMES[i]), signal -> {
                    received.compareAndSet(null, signal.getName());
                    if (!handler.stop()) {
                        Runtime.getRuntime().halt(128 + signal.getNumber());
                    }
                });
            } catch (IllegalArgumentException e) {
                continue; // the signal is not ours
            }
        }
    }

    static Interrupt on(Handler handler) {
        return new Interrupt(handler);
    }

    boolean received() {
        return received.get() != null;
    }

    /// The exit status that says which signal came.
    int status() {
        String name = received.get();
        return name == null ? 0 : 128 + new Signal(name).getNumber();
    }

    @Override
    public void close() {
        for (int i = 0; i < NAMES.length; i++) {
            if (before[i] != null) {
                Signal.handle(new Signal(NAMES[i]), before[i]);
            }
        }
    }
}
