package ingot.data;

/// A bijection of [0, size) keyed by (seed, epoch): a Feistel network on 2k bits, walked until it lands inside.
///
/// Black, Rogaway: Ciphers with Arbitrary Finite Domains, CT-RSA 2002. The domain 2²ᵏ is below 4 × size,
/// so a look-up takes fewer than four walks on average, and an order of any size needs no table and no state.
final class Permutation {
    private static final int ROUNDS = 6;

    private final long size;
    private final int half; // bits of each side
    private final long mask;
    private final long[] keys = new long[ROUNDS];

    Permutation(long size, long seed, long epoch) {
        if (size < 1 || size > 1L << 60) throw new IllegalArgumentException("permutation of " + size + " elements");
        this.size = size;
        int bits = 64 - Long.numberOfLeadingZeros(size - 1);
        this.half = Math.max(1, (bits + 1) / 2);
        this.mask = (1L << half) - 1;
        for (int r = 0; r < ROUNDS; r++) keys[r] = Keyed.mix(seed, epoch, r);
    }

    long apply(long index) {
        if (index < 0 || index >= size) throw new IndexOutOfBoundsException("index " + index + " of " + size);
        long x = index;
        do {
            x = encrypt(x);
        } while (x >= size);
        return x;
    }

    private long encrypt(long x) {
        long left = x >>> half;
        long right = x & mask;
        for (long key : keys) {
            long next = left ^ (Keyed.mix(key ^ right) & mask);
            left = right;
            right = next;
        }
        return left << half | right;
    }
}
