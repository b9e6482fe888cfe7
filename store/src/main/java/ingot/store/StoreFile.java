package ingot.store;

import ingot.ir.IngotException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;

/// The file of a store, locked and open, its header read: what training and inspection have in common.
record StoreFile(Path path, StoreLock lock, Storage storage, Header header, Geometry geometry)
        implements AutoCloseable {
    /// Makes a store that holds nothing yet, with all the room it will ever need.
    static StoreFile create(Path folder, StoreLayout layout, String identity, String note, DiskStore.Options options) {
        Path path = folder.resolve(Header.FILE);
        try {
            Files.createDirectories(folder);
        } catch (IOException e) {
            throw new IngotException("store: cannot make the folder " + folder + ": " + StoreLock.reason(e), e);
        }
        StoreLock lock = StoreLock.take(folder);
        Storage storage = null;
        StoreFile made = null;
        try {
            Storage.Opener opener = options.storage();
            long present = 0;
            if (opener.exists(path)) {
                storage = opener.open(path, false);
                present = leftOver(storage, path);
            }
            Header header = header(layout, identity, options.slackBytes());
            Geometry geometry = header.geometry();
            long free = opener.freeBytes(folder) + present;
            if (free < geometry.fileBytes()) {
                throw tooSmall(path, geometry.fileBytes(), free);
            }
            if (storage == null) {
                storage = opener.open(path, true);
            }
            try {
                write(storage, header, geometry, note, options);
            } catch (IOException e) {
                try {
                    opener.delete(path);
                    free = opener.freeBytes(folder);
                } catch (IOException suppressed) {
                    e.addSuppressed(suppressed);
                }
                if (free < geometry.fileBytes()) {
                    throw tooSmall(path, geometry.fileBytes(), free);
                }
                throw e;
            }
            made = new StoreFile(path, lock, storage, header, geometry);
            return made;
        } catch (IOException e) {
            throw new IngotException("store: cannot create " + path + ": " + StoreLock.reason(e), e);
        } finally {
            if (made == null) {
                closeQuietly(storage, lock);
            }
        }
    }

    static Header header(StoreLayout layout, String identity, long slackBytes) {
        long state = layout.stateBytes();
        long slack = slackBytes >= 0 ? slackBytes : Math.min(state, Math.max(DiskStore.Options.SLACK, state / 32));
        return new Header(
                new SecureRandom().nextLong(),
                layout,
                identity,
                Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
                Geometry.extents(layout, slack));
    }

    static boolean exists(Path folder, Storage.Opener opener) {
        Path path = folder.resolve(Header.FILE);
        if (!opener.exists(path)) {
            return false;
        }
        try (Storage storage = opener.open(path, false);
                Arena arena = Arena.ofConfined()) {
            MemorySegment first = arena.allocate(Blocks.SIZE, Blocks.SIZE);
            if (storage.size() < Blocks.SIZE) {
                return false;
            }
            Blocks.read(storage, 0, first);
            return Header.kind(first) != Header.Kind.UNFINISHED;
        } catch (IOException e) {
            throw new IngotException("store: cannot read " + path + ": " + StoreLock.reason(e), e);
        }
    }

    private static IngotException tooSmall(Path path, long needed, long free) {
        return new IngotException("store: the disk of " + path + " is too small: the store needs " + needed + " bytes, "
                + free + " are free; make room, choose another folder, or train a smaller model");
    }

    /// Bytes of what an interrupted creation left behind; refuses anything else.
    private static long leftOver(Storage storage, Path path) throws IOException {
        long size = storage.size();
        if (size < Blocks.SIZE) {
            return 0;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment first = arena.allocate(Blocks.SIZE, Blocks.SIZE);
            Blocks.read(storage, 0, first);
            return switch (Header.kind(first)) {
                case UNFINISHED -> size;
                case STORE ->
                    throw new IngotException("store: " + path + " exists already; open it, or choose another folder");
                case FOREIGN ->
                    throw new IngotException("store: " + path + " exists and is no store; choose another folder");
            };
        }
    }

    /// The header comes last: without it nothing is a store.
    private static void write(Storage storage, Header header, Geometry geometry, String note, DiskStore.Options options)
            throws IOException {
        storage.allocate(geometry.fileBytes(), done -> options.progress().at(done, geometry.fileBytes()));
        try (Arena arena = Arena.ofConfined()) {
            RowTable table = new RowTable(geometry);
            MemorySegment page = arena.allocate(Blocks.SIZE, Blocks.SIZE);
            MemorySegment superblock = arena.allocate(Geometry.SUPERBLOCK_SLOT, Blocks.SIZE);
            for (int slot = 0; slot < 2; slot++) {
                int[] crcs = new int[geometry.pages()];
                for (int p = 0; p < crcs.length; p++) {
                    crcs[p] = IndexPage.encode(table, p, header.store(), slot, page);
                    Blocks.write(storage, geometry.pagePosition(slot, p), page);
                }
                Superblock root = new Superblock(
                        header.store(),
                        slot,
                        Committer.crc(crcs),
                        !options.durable(),
                        System.currentTimeMillis(),
                        note);
                int bytes = root.encode(superblock);
                Blocks.write(storage, geometry.superblockPosition(slot), superblock.asSlice(0, bytes));
            }
            storage.flush();
            Blocks.write(storage, 0, header.encode(arena));
            storage.flush();
        }
    }

    static StoreFile open(Path folder, Storage.Opener opener) {
        Path path = folder.resolve(Header.FILE);
        if (!opener.exists(path)) {
            throw new IngotException("store: no store in " + folder + " (no file " + Header.FILE + ")");
        }
        StoreLock lock = StoreLock.take(folder);
        Storage storage = null;
        StoreFile found = null;
        try {
            storage = opener.open(path, false);
            Header header = header(storage, path);
            found = new StoreFile(path, lock, storage, header, header.geometry());
            return found;
        } catch (IOException e) {
            throw new IngotException("store: cannot open " + path + ": " + StoreLock.reason(e), e);
        } finally {
            if (found == null) {
                closeQuietly(storage, lock);
            }
        }
    }

    private static Header header(Storage storage, Path path) throws IOException {
        String where = path.toString();
        long size = storage.size();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment first = arena.allocate(Blocks.SIZE, Blocks.SIZE);
            if (size >= Blocks.SIZE) {
                Blocks.read(storage, 0, first);
            }
            switch (Header.kind(first)) {
                case UNFINISHED ->
                    throw new IngotException("store: the creation of " + where
                            + " did not come to an end; nothing is in it yet, create the store again");
                case FOREIGN -> throw new IngotException("store: " + where + " is no store of Ingot");
                case STORE -> {}
            }
            int bytes = Header.bytes(first, where);
            if (size < Math.max(bytes, Header.fileBytes(first))) {
                throw new IngotException("store: " + where + " is truncated: it has " + size
                        + " bytes, its header says " + Header.fileBytes(first) + "; go back to an exported copy");
            }
            MemorySegment blocks = arena.allocate(bytes, Blocks.SIZE);
            Blocks.read(storage, 0, blocks);
            return Header.decode(blocks, where);
        }
    }

    /// Both commits of the file, the newest whole one first.
    List<Root> roots() throws IOException {
        Root zero = Root.read(storage, header, geometry, 0);
        Root one = Root.read(storage, header, geometry, 1);
        return zero.usable() && (!one.usable() || zero.sequence() > one.sequence())
                ? List.of(zero, one)
                : List.of(one, zero);
    }

    /// The newest commit whose superblock and index are whole; `warn` learns of damage to the other.
    Root newest(java.util.function.Consumer<String> warn) throws IOException {
        List<Root> roots = roots();
        Root best = roots.getFirst();
        Root other = roots.getLast();
        if (!best.usable()) {
            throw new IngotException("store: both superblocks of " + path + " are unusable: "
                    + String.join("; ", concat(other.damage(), best.damage()))
                    + "; the store cannot be repaired, go back to an exported copy");
        }
        if (other.superblock() == null || (!other.usable() && other.sequence() > best.sequence())) {
            warn.accept("store: " + path + ": " + other.damage().getFirst() + "; going on from commit "
                    + best.sequence() + " of superblock " + best.slot());
        }
        return best;
    }

    static List<String> concat(List<String> first, List<String> second) {
        return java.util.stream.Stream.concat(first.stream(), second.stream()).toList();
    }

    @Override
    public void close() {
        closeQuietly(storage, lock);
    }

    private static void closeQuietly(@org.jspecify.annotations.Nullable Storage storage, StoreLock lock) {
        try (lock) {
            if (storage != null) {
                storage.close();
            }
        } catch (IOException e) {
            throw new IngotException("store: cannot close a store: " + StoreLock.reason(e), e);
        }
    }
}
