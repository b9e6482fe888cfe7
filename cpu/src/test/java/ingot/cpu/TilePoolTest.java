package ingot.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
class TilePoolTest {
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 8})
    void everyTileRunsOnceAndIsSeenByTheCaller(int threads) {
        try (var pool = new TilePool(threads)) {
            for (int round = 0; round < 3000; round++) {
                int tiles = round % 17;
                int[] runs = new int[tiles];
                pool.run(tiles, (tile, worker) -> runs[tile]++);
                assertThat(runs).containsOnly(ones(tiles));
            }
        }
    }

    private static int[] ones(int tiles) {
        int[] ones = new int[tiles];
        java.util.Arrays.fill(ones, 1);
        return ones;
    }

    @Test
    void workersKeepApart() {
        try (var pool = new TilePool(4)) {
            var busy = new AtomicIntegerArray(4);
            pool.run(400, (tile, worker) -> {
                assertThat(busy.getAndSet(worker, 1)).isZero();
                Thread.onSpinWait();
                busy.set(worker, 0);
            });
        }
    }

    @Test
    void wakesAfterParking() throws InterruptedException {
        try (var pool = new TilePool(3)) {
            for (int round = 0; round < 20; round++) {
                var count = new AtomicInteger();
                pool.run(50, (tile, worker) -> count.incrementAndGet());
                assertThat(count).hasValue(50);
                Thread.sleep(1);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3})
    void aFailureReachesTheCallerAndThePoolLives(int threads) {
        try (var pool = new TilePool(threads)) {
            for (int round = 0; round < 200; round++) {
                assertThatThrownBy(() -> pool.run(20, (tile, worker) -> {
                            if (tile == 11) {
                                throw new IllegalStateException("tile 11");
                            }
                        }))
                        .hasMessage("tile 11");
                var count = new AtomicInteger();
                pool.run(20, (tile, worker) -> count.incrementAndGet());
                assertThat(count).hasValue(20);
            }
        }
    }

    @Test
    void nestedCallsRunInline() {
        try (var pool = new TilePool(3)) {
            var count = new AtomicInteger();
            pool.run(
                    30,
                    (outer, worker) -> pool.run(10, (inner, same) -> {
                        assertThat(same).isEqualTo(worker);
                        count.incrementAndGet();
                    }));
            assertThat(count).hasValue(300);
        }
    }

    @Test
    void callersTakeTurns() throws InterruptedException {
        try (var pool = new TilePool(3)) {
            var count = new AtomicInteger();
            var callers = new ArrayList<Thread>();
            for (int i = 0; i < 4; i++) {
                callers.add(Thread.ofPlatform().start(() -> {
                    for (int round = 0; round < 500; round++) {
                        pool.run(7, (tile, worker) -> count.incrementAndGet());
                    }
                }));
            }
            for (var caller : callers) {
                caller.join();
            }
            assertThat(count).hasValue(4 * 500 * 7);
        }
    }

    @Test
    void anInterruptIsKeptNotSwallowed() {
        try (var pool = new TilePool(2)) {
            Thread.currentThread().interrupt();
            var count = new AtomicInteger();
            pool.run(100, (tile, worker) -> count.incrementAndGet());
            assertThat(count).hasValue(100);
            assertThat(Thread.interrupted()).isTrue();
        }
    }

    @Test
    void aClosedPoolRefuses() {
        var pool = new TilePool(2);
        pool.close();
        assertThatThrownBy(() -> pool.run(1, (tile, worker) -> {})).hasMessage("tile pool: closed");
    }

    @Test
    void aWorkerTakesFromTheSharesOfOthers() throws InterruptedException {
        try (var pool = new TilePool(2)) {
            var release = new java.util.concurrent.CountDownLatch(1);
            var done = new AtomicInteger();
            pool.run(40, (tile, worker) -> {
                if (tile == 0) { // the whole share of worker 0 waits behind it, unless someone takes it
                    await(release);
                } else if (done.incrementAndGet() == 39) {
                    release.countDown();
                }
            });
            assertThat(done).hasValue(39);
        }
    }

    private static void await(java.util.concurrent.CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /// On a machine whose processors cannot be counted or held, sessions do nothing.
    @Test
    void aSessionHoldsItsThreadAndLetsItGo() {
        int all = Affinity.allowed();
        try (var pool = new TilePool(Math.max(1, Runtime.getRuntime().availableProcessors()))) {
            boolean holds = Affinity.of(pool.threads()) != null;
            try (var _ = pool.session()) {
                assertThat(Affinity.allowed()).isEqualTo(holds ? 1 : all);
                var inherited = new AtomicInteger();
                pool.run(pool.threads(), (tile, worker) -> inherited.addAndGet(Affinity.allowed()));
                if (holds) {
                    assertThat(inherited).hasValue(pool.threads());
                }
            }
            assertThat(Affinity.allowed()).isEqualTo(all);
        }
    }
}
