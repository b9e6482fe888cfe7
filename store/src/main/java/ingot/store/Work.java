package ingot.store;

import ingot.ir.IngotException;
import org.jspecify.annotations.Nullable;

/// A transfer that one of the store's threads ends.
final class Work implements Transfer {
    private volatile boolean done;
    private @Nullable Throwable failure; // set before done

    synchronized void end(@Nullable Throwable cause) {
        failure = cause;
        done = true;
        notifyAll();
    }

    @Override
    public boolean done() {
        return done;
    }

    @Override
    public void await() {
        boolean interrupted = false;
        synchronized (this) {
            while (!done) {
                try {
                    wait();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        Throwable cause = failure;
        if (cause != null) {
            String message = cause instanceof IngotException ? cause.getMessage() : "store: " + cause;
            throw new IngotException(String.valueOf(message), cause);
        }
    }
}
