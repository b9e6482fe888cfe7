package ingot.data;

import java.nio.charset.StandardCharsets;

/// Counter-based randomness: every value is a pure function of its keys, so there is no state to save.
final class Keyed {
    private Keyed() {}

    /// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    static long mix(long z) {
        z += 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    static long mix(long a, long b) {
        return mix(mix(a) ^ b);
    }

    static long mix(long a, long b, long c) {
        return mix(mix(a, b) ^ c);
    }

    static long hash(long seed, String text) {
        long h = mix(seed);
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) h = (h ^ (b & 0xFF)) * 0x100000001B3L; // FNV-1a
        return mix(h);
    }

    /// Uniform in [0, 1) from the upper 53 bits.
    static double unit(long bits) {
        return (bits >>> 11) * 0x1p-53;
    }
}
