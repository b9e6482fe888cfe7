package ingot.cpu;

import ingot.compiler.Backend;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// A fixed pool of platform threads that claim the tiles of one kernel from counters.
///
/// The caller of [#run] is worker 0 and works too, so a pool of one thread runs everything inline. Each worker begins
/// with a share of its own, tiles in a row, the same for every run of the same size: what it read or wrote before is in
/// its cache. When its share is used up it takes from the others'. There is no barrier except "all tiles are done": a
/// worker that the machine delays holds up at most the tile it has claimed. Between kernels the workers spin for some
/// microseconds, then park. A pool with a thread for every processor gives each worker its own ([Affinity]); the caller
/// is held on its one only within a [#session].
public final class TilePool implements AutoCloseable {
    private static final long SPIN_NANOS = 30_000;
    private static final int APART = 16; // ints between two counters: no two in a cache line
    private static final VarHandle NEXT = MethodHandles.arrayElementVarHandle(int[].class);
    private static final VarHandle DONE;

    static {
        try {
            DONE = MethodHandles.lookup().findVarHandle(Grid.class, "done", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final Worker[] workers;
    private final @Nullable Affinity affinity;
    private final ReentrantLock running = new ReentrantLock();
    private volatile @Nullable Observer observer;
    private volatile @Nullable Grid current;
    private volatile boolean closed;

    /// A pool of `threads` threads, the caller included.
    public TilePool(int threads) {
        if (threads < 1) {
            throw new IllegalArgumentException("tile pool: threads must be at least 1, got " + threads);
        }
        affinity = Affinity.of(threads);
        workers = new Worker[threads - 1];
        for (int i = 0; i < workers.length; i++) {
            workers[i] = new Worker(this, i + 1);
            workers[i].start();
        }
    }

    public int threads() {
        return workers.length + 1;
    }

    /// Holds the calling thread on the processor of worker 0 until the session is closed by the same thread: for one
    /// that calls [#run] many times.
    public Backend.Session session() {
        if (affinity == null) {
            return () -> {};
        }
        affinity.pin(0);
        return Affinity::release;
    }

    /// Hears when workers work: for profiles.
    public interface Observer {
        /// A worker had tiles from `start` to `end` ([System#nanoTime]); called by that worker.
        void worked(int worker, long start, long end);
    }

    /// Begins or, with null, ends to tell when workers work.
    public void observe(@Nullable Observer by) {
        observer = by;
    }

    /// Runs `task` once for every tile in [0, tiles) and returns when all are done. The first exception a tile throws
    /// is rethrown here; tiles not yet begun are then skipped. Called from inside a tile of this pool it runs inline.
    public void run(int tiles, TileTask task) {
        if (tiles <= 0) {
            return;
        }
        if (Thread.currentThread() instanceof Worker worker && worker.pool == this) {
            inline(tiles, task, worker.index);
            return;
        }
        if (running.isHeldByCurrentThread()) {
            inline(tiles, task, 0);
            return;
        }
        running.lock();
        try {
            if (closed) {
                throw new IllegalStateException("tile pool: closed");
            }
            if (tiles == 1 || workers.length == 0) {
                alone(tiles, task);
            } else {
                dispatch(new Grid(tiles, task, threads(), Thread.currentThread(), observer));
            }
        } finally {
            running.unlock();
        }
    }

    /// All tiles by the caller, as worker 0.
    private void alone(int tiles, TileTask task) {
        Observer by = observer;
        long start = by == null ? 0 : System.nanoTime();
        inline(tiles, task, 0);
        if (by != null) {
            by.worked(0, start, System.nanoTime());
        }
    }

    private static void inline(int tiles, TileTask task, int worker) {
        for (int tile = 0; tile < tiles; tile++) {
            task.run(tile, worker);
        }
    }

    private void dispatch(Grid grid) {
        current = grid;
        int helpers = Math.min(workers.length, grid.tiles - 1);
        for (int i = 0; i < helpers; i++) {
            if (workers[i].parked) {
                LockSupport.unpark(workers[i]);
            }
        }
        grid.claim(0);
        grid.await();
        current = null;
        grid.rethrow();
    }

    @Override
    public void close() {
        running.lock();
        try {
            closed = true;
        } finally {
            running.unlock();
        }
        boolean interrupted = false;
        for (var worker : workers) {
            LockSupport.unpark(worker);
            while (worker.isAlive()) {
                try {
                    worker.join();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /// One call of [#run]. A worker that wakes late finds the counters used up and leaves.
    private static final class Grid {
        final int tiles;
        final TileTask task;
        final int shares;
        final Thread caller;
        private final @Nullable Observer observer;

        private final int[] next; // tiles begun of each share
        private volatile int done;
        private volatile boolean waiting;
        private volatile @Nullable Throwable failure;

        Grid(int tiles, TileTask task, int threads, Thread caller, @Nullable Observer observer) {
            this.tiles = tiles;
            this.task = task;
            this.caller = caller;
            this.observer = observer;
            shares = Math.min(tiles, threads);
            next = new int[shares * APART];
        }

        /// The first tile of a share.
        private int first(int share) {
            return (int) ((long) tiles * share / shares);
        }

        boolean open() {
            for (int share = 0; share < shares; share++) {
                if ((int) NEXT.getVolatile(next, share * APART) < first(share + 1) - first(share)) {
                    return true;
                }
            }
            return false;
        }

        void claim(int worker) {
            int finished = 0;
            long start = observer == null ? 0 : System.nanoTime();
            for (int i = 0; i < shares; i++) {
                finished += share((worker + i) % shares, worker);
            }
            if (observer != null && finished > 0) {
                observer.worked(worker, start, System.nanoTime());
            }
            if (finished > 0 && (int) DONE.getAndAdd(this, finished) + finished == tiles && waiting) {
                LockSupport.unpark(caller);
            }
        }

        private int share(int share, int worker) {
            int from = first(share);
            int length = first(share + 1) - from;
            int finished = 0;
            while (true) {
                int tile = (int) NEXT.getAndAdd(next, share * APART, 1);
                if (tile >= length) {
                    return finished;
                }
                if (failure == null) {
                    try {
                        task.run(from + tile, worker);
                    } catch (Throwable e) {
                        failure = e;
                    }
                }
                finished++;
            }
        }

        void await() {
            if (done == tiles) {
                return;
            }
            long start = System.nanoTime();
            while (done != tiles && System.nanoTime() - start < SPIN_NANOS) {
                Thread.onSpinWait();
            }
            boolean interrupted = false;
            waiting = true;
            while (done != tiles) {
                LockSupport.park(this);
                interrupted |= Thread.interrupted();
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }

        void rethrow() {
            switch (failure) {
                case null -> {}
                case RuntimeException e -> throw e;
                case Error e -> throw e;
                case Throwable e -> throw new IllegalStateException("tile failed", e);
            }
        }
    }

    private static final class Worker extends Thread {
        final TilePool pool;
        final int index;
        volatile boolean parked;

        Worker(TilePool pool, int index) {
            super("ingot-tile-" + index);
            this.pool = pool;
            this.index = index;
            setDaemon(true);
        }

        @Override
        public void run() {
            if (pool.affinity == null) {
                Affinity.release(); // the thread that made the pool may be held
            } else {
                pool.affinity.pin(index);
            }
            @Nullable Grid last = null;
            while (true) {
                var grid = next(last);
                if (grid == null) {
                    return;
                }
                grid.claim(index);
                last = grid;
            }
        }

        private @Nullable Grid next(@Nullable Grid last) {
            long start = System.nanoTime();
            while (true) {
                var grid = fresh(last);
                if (grid != null) {
                    return grid;
                }
                if (pool.closed) {
                    return null;
                }
                if (System.nanoTime() - start < SPIN_NANOS) {
                    Thread.onSpinWait();
                    continue;
                }
                parked = true;
                if (fresh(last) == null && !pool.closed) {
                    LockSupport.park(pool);
                }
                parked = false;
                start = System.nanoTime();
            }
        }

        private @Nullable Grid fresh(@Nullable Grid last) {
            var grid = pool.current;
            return grid != null && grid != last && grid.open() ? grid : null;
        }
    }
}
