package ingot.store;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/// The threads that move a store's bytes, in the order of the requests. They are the store's own because an interrupted
/// thread closes the file it uses.
final class IoThreads {
    private static final Runnable END = () -> {};

    private final BlockingQueue<Runnable> queue = new LinkedBlockingQueue<>();
    private final Thread[] threads;

    IoThreads(int count) {
        threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            threads[i] = start("ingot-store-" + i, this::loop);
        }
    }

    static Thread start(String name, Runnable body) {
        return Thread.ofPlatform().daemon().name(name).stackSize(512 << 10).start(body);
    }

    void submit(Runnable job) {
        queue.add(job);
    }

    private void loop() {
        while (true) {
            Runnable job;
            try {
                job = queue.take();
            } catch (InterruptedException e) {
                continue; // nobody has a reason to interrupt these threads
            }
            if (job == END) {
                return;
            }
            job.run();
        }
    }

    /// Ends the threads after the jobs that wait.
    void close() {
        for (int i = 0; i < threads.length; i++) {
            queue.add(END);
        }
        for (Thread thread : threads) {
            join(thread);
        }
    }

    static void join(Thread thread) {
        boolean interrupted = false;
        while (true) {
            try {
                thread.join();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
