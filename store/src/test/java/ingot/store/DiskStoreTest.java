package ingot.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.store.WeightStore.Key;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The store on disk, over real files.
class DiskStoreTest extends WeightStoreContract {
    static final StoreLayout LAYOUT = new StoreLayout(
            List.of(
                    new StoredTensor("wte", Type.f32(5, 500)), // 3 chunks, the last short
                    new StoredTensor("none", Type.f32(0)),
                    new StoredTensor("bias", Type.f32(10)),
                    new StoredTensor("scalar", Type.f32())),
            List.of("m", "v"),
            1024);
    private static final String IDENTITY = "seed: 1\nmodel: toy";

    @TempDir
    Path folder;

    private final List<String> warnings = new ArrayList<>();
    private int opened;

    @Override
    WeightStore open(List<StoredTensor> tensors) {
        MemorySegment window = Arena.ofAuto().allocate(1 << 20, Blocks.SIZE);
        return DiskStore.create(
                folder.resolve("contract" + opened++),
                new StoreLayout(tensors, List.of("m"), 1024),
                "",
                "",
                DiskStore.Options.of((_, _, into) -> into.fill((byte) 0), warnings::add)
                        .withWindow(window));
    }

    @Override
    void update(WeightStore store, StoredTensor tensor, float[] weight, float[] moment) {
        DiskStore disk = (DiskStore) store;
        int index = disk.layout().index(tensor.name());
        for (int chunk = 0; chunk < disk.layout().chunks(index); chunk++) {
            int start = (int) disk.layout().start(chunk);
            int n = disk.layout().elements(index, chunk);
            disk.gradient(index, chunk, 1, buffer()).await();
            disk.update(index, chunk, 1, List.of(buffer(weight, start, n), buffer(moment, start, n)))
                    .await();
        }
    }

    private static MemorySegment buffer() {
        return Arena.ofAuto().allocate(4096, Blocks.SIZE);
    }

    private static MemorySegment buffer(float[] values, int start, int n) {
        MemorySegment buffer = buffer();
        MemorySegment.copy(values, start, buffer, ValueLayout.JAVA_FLOAT, 0, n);
        return buffer;
    }

    private static MemorySegment filled(float value) {
        MemorySegment buffer = buffer();
        for (int i = 0; i < 1024; i++) {
            buffer.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
        }
        return buffer;
    }

    private static void initial(String tensor, long start, MemorySegment into) {
        for (long i = 0; i < into.byteSize() / 4; i++) {
            into.setAtIndex(ValueLayout.JAVA_FLOAT, i, tensor.length() * 10_000 + start + i);
        }
    }

    private DiskStore.Options options() {
        return DiskStore.Options.of(DiskStoreTest::initial, warnings::add);
    }

    private DiskStore create() {
        return DiskStore.create(folder.resolve("run"), LAYOUT, IDENTITY, "start", options());
    }

    private DiskStore reopen() {
        return DiskStore.open(folder.resolve("run"), LAYOUT, IDENTITY, options());
    }

    private static void update(DiskStore store, int tensor, int chunk, long generation, float value) {
        store.update(tensor, chunk, generation, List.of(filled(value), filled(value + 1), filled(value + 2)))
                .await();
    }

    private static float first(DiskStore store, int tensor, int chunk, int part) {
        MemorySegment buffer = buffer();
        store.read(tensor, chunk, part, buffer).await();
        return buffer.get(ValueLayout.JAVA_FLOAT, 0);
    }

    @Test
    void whatWasNeverUpdatedHasItsFirstValues() {
        try (DiskStore store = create()) {
            assertThat(store.generation(0, 1)).isZero();
            assertThat(store.gradientGeneration(0, 1)).isZero();
            assertThat(first(store, 0, 1, 0)).isEqualTo(30_000f + 1024);
            assertThat(first(store, 0, 1, 2)).isZero();
            assertThat(store.statistics().bytesRead()).isZero();
        }
    }

    @Test
    void reopensAtTheNewestCommit() {
        try (DiskStore store = create()) {
            assertThat(store.note()).isEqualTo("start");
            update(store, 0, 2, 1, 5);
            store.gradient(2, 0, 1, filled(9)).await();
            store.commit("step 1");
            update(store, 0, 2, 2, 6);
            update(store, 2, 0, 1, 7);
        }
        try (DiskStore store = reopen()) {
            assertThat(warnings).isEmpty();
            assertThat(store.note()).isEqualTo("step 1");
            assertThat(store.generation(0, 2)).isEqualTo(1);
            assertThat(first(store, 0, 2, 0)).isEqualTo(5);
            assertThat(first(store, 0, 2, 1)).isEqualTo(6);
            assertThat(first(store, 0, 2, 2)).isEqualTo(7);
            assertThat(store.generation(2, 0)).isZero();
            assertThat(store.gradientGeneration(2, 0)).isEqualTo(1);
            MemorySegment gradient = buffer();
            store.readGradient(2, 0, 1, gradient).await();
            assertThat(gradient.get(ValueLayout.JAVA_FLOAT, 36)).isEqualTo(9);
            update(store, 2, 0, 1, 8);
            assertThat(store.gradientGeneration(2, 0)).isZero();
        }
    }

    /// Many more updates than the slack has room for: the store makes room by commits of its own.
    @Test
    void makesRoomByItself() {
        try (DiskStore store = create()) {
            List<Transfer> transfers = new ArrayList<>();
            for (int generation = 1; generation <= 40; generation++) {
                for (int chunk = 0; chunk < 3; chunk++) {
                    transfers.add(store.gradient(0, chunk, generation, filled(-1)));
                    transfers.add(
                            store.update(0, chunk, generation, List.of(filled(generation), filled(chunk), filled(0))));
                }
            }
            store.commit("end");
            assertThat(transfers).allMatch(Transfer::done);
            transfers.forEach(Transfer::await);
            assertThat(store.sequence()).isGreaterThan(2);
            assertThat(store.note()).isEqualTo("end");
        }
        try (DiskStore store = reopen()) {
            for (int chunk = 0; chunk < 3; chunk++) {
                assertThat(store.generation(0, chunk)).isEqualTo(40);
                assertThat(store.gradientGeneration(0, chunk)).isZero();
                assertThat(first(store, 0, chunk, 0)).isEqualTo(40);
                assertThat(first(store, 0, chunk, 1)).isEqualTo(chunk);
            }
        }
    }

    @Test
    void refusesMisuseOfRows() {
        try (DiskStore store = create()) {
            update(store, 0, 0, 3, 1);
            assertThatThrownBy(() -> update(store, 0, 0, 3, 1))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("wte chunk 0 is at generation 3, its update has generation 3");
            assertThatThrownBy(() -> store.gradient(0, 0, 2, filled(0)))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("its gradient has generation 2");
            assertThatThrownBy(() -> store.readGradient(0, 0, 4, buffer()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("wte chunk 0 has no gradient, expected the one of update 4");
            store.gradient(0, 0, 4, filled(0)).await();
            assertThatThrownBy(() -> store.readGradient(0, 0, 5, buffer()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("wte chunk 0 has the gradient of update 4, expected the one of update 5");
            assertThatThrownBy(() -> store.read(0, 3, 0, buffer()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("wte has 3 chunks, no chunk 3");
            assertThatThrownBy(() -> store.read(0, 0, 0, buffer().asSlice(0, 4000)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("memory for wte chunk 0: expected 4096 native bytes");
            assertThatThrownBy(() -> store.pin(Key.weight("wte")))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("the window of 0 bytes has no room for wte:weight f32[5, 500]");
        }
    }

    @Test
    void pinsWholeTensorsThroughOtherMemory() {
        try (DiskStore store = create()) {
            update(store, 0, 1, 1, 5);
            store.gradient(0, 2, 1, filled(4)).await();
            try (WeightStore view = store.through(Arena.ofAuto().allocate(20_480, Blocks.SIZE))) {
                MemorySegment weight = view.pin(Key.weight("wte"));
                assertThat(weight.getAtIndex(ValueLayout.JAVA_FLOAT, 1023)).isEqualTo(31_023);
                assertThat(weight.getAtIndex(ValueLayout.JAVA_FLOAT, 1024)).isEqualTo(5);
                assertThat(weight.getAtIndex(ValueLayout.JAVA_FLOAT, 2499)).isEqualTo(32_499);
                assertThatThrownBy(() -> view.pin(Key.gradient("wte")))
                        .hasMessageContaining("no room for wte:gradient f32[5, 500] (12288 bytes) beside 12288 pinned");
                assertThatThrownBy(() -> view.release(Key.weight("wte"), true))
                        .isInstanceOf(IllegalStateException.class)
                        .hasMessageContaining("lies on disk, its pinned copy cannot be changed");
                view.release(Key.weight("wte"), false);
                view.prefetch(List.of(Key.weight("bias"), Key.weight("scalar"), Key.weight("wte")));
                MemorySegment gradient = view.pin(Key.gradient("wte"));
                assertThat(gradient.getAtIndex(ValueLayout.JAVA_FLOAT, 2047)).isZero();
                assertThat(gradient.getAtIndex(ValueLayout.JAVA_FLOAT, 2048)).isEqualTo(4);
            }
        }
    }

    @Test
    void refusesOtherStores() {
        assertThatThrownBy(this::reopen).hasMessageContaining("no store in");
        assertThat(DiskStore.exists(folder.resolve("run"), options().storage())).isFalse();
        create().close();
        assertThat(DiskStore.exists(folder.resolve("run"), options().storage())).isTrue();
        assertThatThrownBy(this::create).isInstanceOf(IngotException.class).hasMessageContaining("exists already");
        refuses(new StoreLayout(LAYOUT.tensors(), LAYOUT.moments(), 2048), "chunks of 1024 elements, expected 2048");
        refuses(new StoreLayout(LAYOUT.tensors(), List.of("m"), 1024), "moments [m, v], expected [m]");
        refuses(new StoreLayout(LAYOUT.tensors().subList(0, 3), LAYOUT.moments(), 1024), "4 tensors, expected 3");
        List<StoredTensor> tensors = new ArrayList<>(LAYOUT.tensors());
        tensors.set(2, new StoredTensor("bias", Type.f32(11)));
        refuses(new StoreLayout(tensors, LAYOUT.moments(), 1024), "tensor 2 as bias f32[10], expected bias f32[11]");
        assertThatThrownBy(() -> DiskStore.open(folder.resolve("run"), LAYOUT, "seed: 2\nmodel: toy", options()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("'seed: 1', expected 'seed: 2'");
        reopen().close();
    }

    private void refuses(StoreLayout layout, String message) {
        assertThatThrownBy(() -> DiskStore.open(folder.resolve("run"), layout, IDENTITY, options()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("belongs to another run")
                .hasMessageContaining(message);
    }

    @Test
    void belongsToOneOwner() throws IOException {
        try (DiskStore store = create()) {
            assertThatThrownBy(this::reopen)
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining(
                            "is in use by pid " + ProcessHandle.current().pid() + " on host ")
                    .hasMessageContaining(" since ");
            assertThat(first(store, 2, 0, 0)).isEqualTo(40_000);
        }
        Files.writeString(folder.resolve("run").resolve(StoreLock.FILE), "pid 1 on host gone since long ago\n");
        reopen().close();
    }

    @Test
    void belongsToOneProcess() throws Exception {
        create().close();
        Path lock = folder.resolve("run").resolve(StoreLock.FILE);
        Path classes = Path.of(LockHolder.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        if (!Files.exists(classes.resolve("ingot/store/LockHolder.class"))) {
            classes = Path.of("target", "test-classes"); // patched into the module
        }
        Process other = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        classes.toString(),
                        LockHolder.class.getName(),
                        lock.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (var output = other.inputReader()) {
            assertThat(output.readLine()).isEqualTo("locked");
            assertThatThrownBy(this::reopen)
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("is in use by pid 4711 on host elsewhere since yesterday");
            other.destroyForcibly().waitFor();
            reopen().close();
        } finally {
            other.destroyForcibly();
        }
    }

    @Test
    void refusesAFolderThatIsReadOnly() throws IOException {
        Path run = Files.createDirectories(folder.resolve("run"));
        assertThat(run.toFile().setWritable(false)).isTrue();
        try {
            Assumptions.assumeFalse(Files.isWritable(run), "the superuser may write everywhere");
            assertThatThrownBy(this::create)
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("permission denied")
                    .hasMessageContaining("the folder must be writable");
        } finally {
            assertThat(run.toFile().setWritable(true)).isTrue();
        }
        Path file = Files.createFile(folder.resolve("file"));
        assertThatThrownBy(() -> DiskStore.create(file.resolve("run"), LAYOUT, IDENTITY, "", options()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("cannot make the folder");
    }

    /// An index of several pages: each commit writes to its copy what changed since that copy was written.
    @Test
    void keepsBothIndexesWhole() {
        StoreLayout many =
                new StoreLayout(List.of(new StoredTensor("w", Type.f32(150, 1024))), List.of("m", "v"), 1024);
        Path run = folder.resolve("many");
        Geometry geometry = StoreFile.header(many, "", -1).geometry();
        assertThat(geometry.pages()).isEqualTo(3);
        int[][] changes = {{0, 60}, {149}, {}, {60}, {0}, {}, {149}};
        DiskStore.create(run, many, "", "", options()).close();
        long[] generation = new long[150];
        for (int i = 0; i < changes.length; i++) {
            try (DiskStore store = DiskStore.open(run, many, "", options())) {
                for (int turn = 0; turn <= i % 3; turn++) {
                    for (int chunk : changes[i]) {
                        update(store, 0, chunk, ++generation[chunk], chunk + generation[chunk]);
                    }
                    store.commit("turn " + i + " " + turn);
                }
            }
            assertThat(StoreInspection.verify(run, Progress.NONE)).isEmpty();
            try (DiskStore store = DiskStore.open(run, many, "", options())) {
                assertThat(store.note()).isEqualTo("turn " + i + " " + i % 3);
                for (int chunk : new int[] {0, 60, 149}) {
                    assertThat(store.generation(0, chunk)).isEqualTo(generation[chunk]);
                    if (generation[chunk] > 0) {
                        assertThat(first(store, 0, chunk, 0)).isEqualTo(chunk + generation[chunk]);
                    }
                }
            }
        }
        assertThat(warnings).isEmpty();
    }

    @Test
    void closesOnce() {
        DiskStore store = create();
        store.close();
        store.close();
        assertThatThrownBy(() -> store.read(0, 0, 0, buffer())).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> store.commit("late")).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void refusesTruncatedForeignAndNewerFiles() throws IOException {
        create().close();
        Path file = folder.resolve("run").resolve(Header.FILE);
        byte[] whole = Files.readAllBytes(file);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate(whole.length - 4096);
        }
        assertThatThrownBy(this::reopen)
                .hasMessageContaining(
                        "is truncated: it has " + (whole.length - 4096) + " bytes, its header says " + whole.length);
        damage(file, whole, bytes -> bytes[8] = 7);
        assertThatThrownBy(this::reopen).hasMessageContaining("has format version 7, this Ingot reads version 1");
        damage(file, whole, bytes -> bytes[100] ^= 1);
        assertThatThrownBy(this::reopen).hasMessageContaining("checksum of its header does not match");
        damage(file, whole, bytes -> bytes[0] ^= 1);
        assertThatThrownBy(this::reopen).hasMessageContaining("is no store of Ingot");
        assertThatThrownBy(this::create).hasMessageContaining("exists and is no store");
        damage(file, whole, bytes -> java.util.Arrays.fill(bytes, 0, 4096, (byte) 0));
        assertThatThrownBy(this::reopen)
                .hasMessageContaining("creation")
                .hasMessageContaining("create the store again");
        create().close();
        reopen().close();
    }

    private static void damage(Path file, byte[] whole, Consumer<byte[]> change) throws IOException {
        byte[] bytes = whole.clone();
        change.accept(bytes);
        Files.write(file, bytes);
    }

    @Test
    void goesOnFromTheOtherSuperblock() throws IOException {
        try (DiskStore store = create()) {
            update(store, 2, 0, 1, 1);
            store.commit("step 1"); // commit 2: superblock 0
            update(store, 2, 0, 2, 2);
            store.commit("step 2"); // commit 3: superblock 1
        }
        Geometry geometry = StoreFile.header(LAYOUT, IDENTITY, -1).geometry();
        Path file = folder.resolve("run").resolve(Header.FILE);
        byte[] whole = Files.readAllBytes(file);
        damage(file, whole, bytes -> bytes[(int) geometry.superblockPosition(1) + 50] ^= 4);
        try (DiskStore store = reopen()) {
            assertThat(store.note()).isEqualTo("step 1");
            assertThat(first(store, 2, 0, 0)).isEqualTo(1);
            assertThat(warnings)
                    .singleElement()
                    .asString()
                    .contains("superblock 1 is damaged")
                    .contains("going on from commit 2 of superblock 0");
            update(store, 2, 0, 2, 2);
            store.commit("step 2 again");
        }
        warnings.clear();
        try (DiskStore store = reopen()) {
            assertThat(store.note()).isEqualTo("step 2 again");
            assertThat(warnings).isEmpty();
        }
        damage(file, whole, bytes -> bytes[(int) geometry.indexPosition(1) + 3000] ^= 4);
        try (DiskStore store = reopen()) {
            assertThat(store.note()).isEqualTo("step 1");
            assertThat(warnings)
                    .singleElement()
                    .asString()
                    .contains("page 0 of index 1 (wte chunk 0 to scalar chunk 0)");
        }
        damage(file, whole, bytes -> {
            bytes[(int) geometry.superblockPosition(0)] ^= 4;
            bytes[(int) geometry.superblockPosition(1)] ^= 4;
        });
        assertThatThrownBy(this::reopen)
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("both superblocks")
                .hasMessageContaining("superblock 0 is damaged")
                .hasMessageContaining("superblock 1 is damaged");
    }

    @Test
    void namesWhatTheDiskChanged() throws IOException {
        long position;
        try (DiskStore store = create()) {
            update(store, 0, 1, 1, 5);
            store.commit("step 1");
            position = StoreFile.header(LAYOUT, IDENTITY, -1)
                    .geometry()
                    .classes()
                    .getFirst()
                    .offset();
        }
        Path file = folder.resolve("run").resolve(Header.FILE);
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.wrap(new byte[] {1}), position + 17);
        }
        try (DiskStore store = reopen()) {
            assertThatThrownBy(() -> first(store, 0, 1, 0))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("wte chunk 1 weight (generation 1, byte " + position)
                    .hasMessageContaining("is damaged");
            assertThat(first(store, 0, 1, 1)).isEqualTo(6);
            MemorySegment into = buffer();
            Arrival arrival = store.arrival(0, 1, 0, into);
            arrival.await();
            arrival.pass(into.asSlice(0, 1000));
            arrival.pass(into.asSlice(1000));
            assertThatThrownBy(arrival::check)
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("wte chunk 1 weight (generation 1, byte " + position)
                    .hasMessageContaining("is damaged");
        }
    }

    @Test
    void refusesADiskThatIsTooSmall() {
        Storage.Opener files = options().storage();
        Storage.Opener small = new Storage.Opener() {
            @Override
            public Storage open(Path file, boolean create) throws IOException {
                return files.open(file, create);
            }

            @Override
            public boolean exists(Path file) {
                return files.exists(file);
            }

            @Override
            public void delete(Path file) throws IOException {
                files.delete(file);
            }

            @Override
            public long freeBytes(Path folder) {
                return 5000;
            }
        };
        long needed = StoreFile.header(LAYOUT, IDENTITY, -1).geometry().fileBytes();
        assertThatThrownBy(() -> DiskStore.create(
                        folder.resolve("run"), LAYOUT, IDENTITY, "", options().withStorage(small)))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("needs " + needed + " bytes, 5000 are free");
        assertThat(folder.resolve("run").resolve(Header.FILE)).doesNotExist();
    }

    @Test
    void withoutDurabilityItIsMarked() {
        DiskStore.Options fast = options().withDurability(false);
        Path run = folder.resolve("run");
        try (DiskStore store = DiskStore.create(run, LAYOUT, IDENTITY, "", fast)) {
            update(store, 0, 0, 1, 3);
            store.commit("step 1");
            assertThat(store.statistics().flushSeconds()).isZero();
        }
        try (DiskStore store = DiskStore.open(run, LAYOUT, IDENTITY, fast)) {
            assertThat(first(store, 0, 0, 0)).isEqualTo(3);
        }
        assertThatThrownBy(this::reopen)
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("written without checksums and flushes");
    }

    @Test
    void countsWhatItDoes() {
        try (DiskStore store = create()) {
            update(store, 0, 0, 1, 3);
            first(store, 0, 0, 1);
            store.commit("step 1");
            DiskStore.Statistics statistics = store.statistics();
            assertThat(statistics.bytesRead()).isEqualTo(4096);
            assertThat(statistics.bytesWritten()).isEqualTo(3 * 4096 + 2 * 4096);
            assertThat(statistics.commits()).isEqualTo(1);
            assertThat(statistics.flushSeconds()).isPositive();
        }
    }

    private static final StoreLayout PARTLY_FROZEN = new StoreLayout(
            List.of(new StoredTensor("base", Type.f32(5, 500), true), new StoredTensor("head", Type.f32(1000))),
            List.of("m", "v"),
            1024);

    /// First values from a file: `offset` is added to all of them.
    private DiskStore.Options fromFile(float offset) {
        return DiskStore.Options.of(
                        new Initial() {
                            @Override
                            public void fill(String tensor, long start, MemorySegment into) {
                                for (long i = 0; i < into.byteSize() / 4; i++) {
                                    into.setAtIndex(ValueLayout.JAVA_FLOAT, i, offset + start + i);
                                }
                            }

                            @Override
                            public String source(String tensor) {
                                return "base.safetensors";
                            }
                        },
                        warnings::add)
                .withWindow(Arena.ofAuto().allocate(1 << 16, Blocks.SIZE));
    }

    @Test
    void whatIsFrozenTakesNoRoomAndIsNeverWritten() {
        StoreLayout trained = new StoreLayout(PARTLY_FROZEN.tensors().subList(1, 2), List.of("m", "v"), 1024);
        assertThat(DiskStore.diskBytes(PARTLY_FROZEN)).isEqualTo(DiskStore.diskBytes(trained));
        assertThat(PARTLY_FROZEN.stateBytes()).isEqualTo(16_000);
        assertThat(PARTLY_FROZEN.frozenBytes()).isEqualTo(10_000);
        try (DiskStore store = DiskStore.create(folder.resolve("f"), PARTLY_FROZEN, "", "", fromFile(1))) {
            assertThat(first(store, 0, 1, 0)).isEqualTo(1025);
            assertThat(store.keys())
                    .extracting(Key::toString)
                    .containsExactly("base:weight", "head:weight", "head:gradient", "head:m", "head:v");
            assertThatThrownBy(() -> store.pin(Key.gradient("base"))).isInstanceOf(IngotException.class);
            assertThatThrownBy(() -> store.gradient(0, 0, 1, filled(1)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("base chunk 0 is frozen");
            update(store, 1, 0, 1, 5);
            store.commit("");
        }
        assertThat(StoreInspection.verify(folder.resolve("f"), Progress.NONE)).isEmpty();
        assertThatThrownBy(() -> DiskStore.open(
                        folder.resolve("f"),
                        new StoreLayout(
                                List.of(
                                        new StoredTensor("base", Type.f32(5, 500)),
                                        PARTLY_FROZEN.tensors().get(1)),
                                List.of("m", "v"),
                                1024),
                        "",
                        fromFile(1)))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("base f32[5, 500] (frozen), expected base f32[5, 500]");
    }

    @Test
    void aFileThatChangedIsRefusedByTensorAndChunk() {
        try (DiskStore store = DiskStore.create(folder.resolve("f"), PARTLY_FROZEN, "", "", fromFile(1))) {
            first(store, 0, 1, 0);
            first(store, 1, 0, 0);
            store.commit("");
        }
        try (DiskStore store = DiskStore.open(folder.resolve("f"), PARTLY_FROZEN, "", fromFile(1))) {
            assertThat(first(store, 0, 1, 0)).isEqualTo(1025);
        }
        try (DiskStore store = DiskStore.open(folder.resolve("f"), PARTLY_FROZEN, "", fromFile(2))) {
            assertThat(first(store, 0, 0, 0)).describedAs("never read before").isEqualTo(2);
            assertThatThrownBy(() -> first(store, 0, 1, 0))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("base chunk 1 has changed in base.safetensors");
            update(store, 1, 0, 1, 5);
            assertThat(first(store, 1, 0, 0))
                    .describedAs("its own value by now")
                    .isEqualTo(5);
        }
    }
}
