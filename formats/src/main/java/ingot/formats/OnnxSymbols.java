package ingot.formats;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;

/// Sizes that a file leaves open. In the graph each is a prime number, so a size that is a multiple of it is a multiple
/// of what the number stands for.
///
/// A prime may divide a size by chance. So a graph is written twice, with other primes: only if both give the same
/// bytes has every size been told apart.
record OnnxSymbols(SequencedMap<String, Integer> primes) {
    static final OnnxSymbols NONE = new OnnxSymbols(new LinkedHashMap<>());

    /// A size as `factor` times symbols, each as often as it divides the number.
    record Product(long factor, SequencedMap<String, Integer> powers) {
        boolean isOpen() {
            return !powers.isEmpty();
        }

        /// `4*batch*sequence`: for a dimension without a name of its own.
        @Override
        public String toString() {
            StringBuilder text = new StringBuilder(factor == 1 ? "" : Long.toString(factor));
            powers.forEach((symbol, power) -> {
                for (int i = 0; i < power; i++) {
                    text.append(text.isEmpty() ? "" : "*").append(symbol);
                }
            });
            return text.toString();
        }
    }

    Product product(long size) {
        long factor = size;
        SequencedMap<String, Integer> powers = new LinkedHashMap<>();
        for (Map.Entry<String, Integer> entry : primes.entrySet()) {
            while (factor > 0 && factor % entry.getValue() == 0) {
                factor /= entry.getValue();
                powers.merge(entry.getKey(), 1, Integer::sum);
            }
        }
        return new Product(factor, powers);
    }

    boolean isOpen(long size) {
        return size > 0 && product(size).isOpen();
    }

    /// The largest prime that is at most `most` and lies `after` places before the largest; 0 if there is none above 2.
    static int prime(int most, int after) {
        int left = after;
        for (int candidate = most; candidate > 2; candidate--) {
            if (java.math.BigInteger.valueOf(candidate).isProbablePrime(30) && left-- == 0) {
                return candidate;
            }
        }
        return 0;
    }
}
