package ingot.train;

import ingot.ir.IngotException;
import java.util.Arrays;

/// How the next token is chosen from the logits: a pure function of (logits, seed, number of the token).
///
/// @param temperature 0: always the likeliest token, the smaller id of equals; else logits are divided by it
/// @param topK only the k likeliest tokens; 0: all
/// @param topP only the likeliest tokens that together reach this probability (Holtzman et al. 2020); 1: all
/// @param seed the same seed gives the same text
/// @param maxTokens most tokens to generate
public record Sampling(double temperature, int topK, double topP, long seed, int maxTokens) {
    public static final Sampling DEFAULT = new Sampling(0.8, 50, 1, 1, 200);

    public Sampling {
        require(temperature >= 0 && Double.isFinite(temperature), "temperature", "at least 0", temperature);
        require(topK >= 0, "top-k", "at least 0 (0: all tokens)", topK);
        require(topP > 0 && topP <= 1, "top-p", "above 0 and at most 1", topP);
        require(maxTokens >= 0, "max-tokens", "at least 0", maxTokens);
    }

    /// Always the likeliest token.
    public static Sampling greedy(int maxTokens) {
        return new Sampling(0, 0, 1, 1, maxTokens);
    }

    /// The token with number `index` of a text.
    int choose(float[] logits, long index) {
        for (int id = 0; id < logits.length; id++) {
            if (!Float.isFinite(logits[id])) {
                throw new IngotException("generate: the logit of token " + id + " is " + logits[id]
                        + "; the weights of this model are broken");
            }
        }
        return temperature == 0 || topK == 1 ? likeliest(logits) : draw(logits, uniform(seed, index));
    }

    private static int likeliest(float[] logits) {
        int best = 0;
        for (int id = 1; id < logits.length; id++) {
            best = logits[id] > logits[best] ? id : best;
        }
        return best;
    }

    /// Walks the candidates, likeliest first, until their weights e^((logit − max) / temperature) reach `u` of the sum.
    private int draw(float[] logits, double u) {
        long[] order = new long[logits.length];
        for (int id = 0; id < order.length; id++) {
            order[id] = (long) descending(logits[id]) << 32 | id;
        }
        Arrays.sort(order);
        int count = topK == 0 ? order.length : Math.min(topK, order.length);
        double max = logits[(int) order[0]];
        double[] upTo = new double[count];
        double sum = 0;
        for (int i = 0; i < count; i++) {
            sum += StrictMath.exp((logits[(int) order[i]] - max) / temperature);
            upTo[i] = sum;
        }
        if (topP < 1) {
            int kept = first(upTo, topP * sum);
            count = kept + 1;
            sum = upTo[kept];
        }
        return (int) order[Math.min(count - 1, first(upTo, u * sum))];
    }

    /// The first place where the running sum exceeds, or in the end reaches, `wanted`.
    private static int first(double[] upTo, double wanted) {
        for (int i = 0; i < upTo.length; i++) {
            if (upTo[i] > wanted) {
                return i;
            }
        }
        return upTo.length - 1;
    }

    /// An int whose order is the reverse of the floats'.
    private static int descending(float logit) {
        int bits = Float.floatToIntBits(logit + 0f); // −0 becomes 0
        return ~(bits >= 0 ? bits : bits ^ 0x7FFFFFFF);
    }

    /// Uniform in [0, 1): SplitMix64 (Steele, Lea, Flood 2014) over (seed, index).
    private static double uniform(long seed, long index) {
        return (mix(mix(seed) ^ index) >>> 11) * 0x1p-53;
    }

    private static long mix(long z) {
        long x = z + 0x9E3779B97F4A7C15L;
        x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L;
        x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
        return x ^ (x >>> 31);
    }

    private static void require(boolean condition, String what, String expected, Number got) {
        if (!condition) {
            throw new IngotException("generate: " + what + " expected " + expected + ", got " + got);
        }
    }
}
