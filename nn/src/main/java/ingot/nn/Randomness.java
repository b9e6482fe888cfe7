package ingot.nn;

import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;

/// Where a training graph takes its random bits from: one key, and a stream number per use in the order of
/// construction.
///
/// The key I32[4] = (seed low, seed high, step, first row of this batch) comes with every step; evaluation graphs have
/// no `Randomness`.
public final class Randomness {
    private final Value key;
    private int streams;

    public Randomness(Value key) {
        this.key = key;
    }

    /// Declares the key as the input `key`.
    public static Randomness input(GraphBuilder builder) {
        return new Randomness(builder.input("key", Type.i32(4)));
    }

    public Value key() {
        return key;
    }

    /// The same with streams from a number on.
    Randomness from(int stream) {
        streams = stream;
        return this;
    }

    public int nextStream() {
        return streams++;
    }
}
