package ingot.cpu;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/// The thread that makes code hot while others compute; it ends when there is nothing left to do.
final class Background {
    private static final ScheduledThreadPoolExecutor EXECUTOR = executor();

    private Background() {}

    private static ScheduledThreadPoolExecutor executor() {
        var executor = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(
                    () -> {
                        Affinity.release(); // whoever asks first may be held
                        task.run();
                    },
                    "ingot-warmup");
            thread.setDaemon(true);
            return thread;
        });
        executor.setKeepAliveTime(1, TimeUnit.SECONDS);
        executor.allowCoreThreadTimeOut(true);
        return executor;
    }

    static void run(Runnable task) {
        EXECUTOR.execute(task);
    }

    static void later(Runnable task, long nanos) {
        var _ = EXECUTOR.schedule(task, nanos, TimeUnit.NANOSECONDS);
    }
}
