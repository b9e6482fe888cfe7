package ingot.train;

import ingot.store.WeightStore;
import ingot.store.WeightStore.Key;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/// SHA-256 over weights, moments and losses: two runs with the same digest did the same.
public final class Digest {
    /// The digest of no losses.
    static final String EMPTY = "";

    private Digest() {}

    /// The digest of the losses so far and one more.
    static String append(String losses, float loss) {
        MessageDigest sha = sha256();
        sha.update(losses.getBytes(StandardCharsets.UTF_8));
        sha.update(ByteBuffer.allocate(4).putInt(0, Float.floatToRawIntBits(loss)));
        return HexFormat.of().formatHex(sha.digest());
    }

    /// The digest of a store's weights and moments, and of the losses that led to them. Nothing may be pending.
    public static String of(WeightStore store, String losses) {
        Running digest = new Running();
        for (Key key : store.keys()) {
            if (key.part().equals(Key.GRADIENT)) {
                continue;
            }
            digest.begin(key);
            store.read(key, memory -> {
                for (long at = 0; at < memory.byteSize(); at += 1 << 20) {
                    digest.add(memory.asSlice(at, Math.min(1 << 20, memory.byteSize() - at)));
                }
            });
        }
        return digest.end(losses);
    }

    /// The digest of a state that comes piece by piece: weights and moments of every tensor, in the order of a store.
    static final class Running {
        private final MessageDigest sha = sha256();

        void begin(Key key) {
            sha.update(key.toString().getBytes(StandardCharsets.UTF_8));
        }

        void add(MemorySegment piece) {
            sha.update(piece.asByteBuffer());
        }

        String end(String losses) {
            sha.update(losses.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(sha.digest());
        }
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
