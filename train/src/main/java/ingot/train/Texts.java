package ingot.train;

import ingot.data.TextTokenizer;
import ingot.runtime.Executor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/// Texts as ids, each as long as it is.
record Texts(List<TextTokenizer.Encoded> encoded, int padding) {
    private static final int STEP = 16;

    /// One text, or two that belong together.
    record Pair(String first, String second) {}

    Texts {
        encoded = List.copyOf(encoded);
    }

    /// Encodes texts on all cores.
    static Texts of(List<Pair> texts, TextTokenizer tokenizer, Callback callback) {
        AtomicInteger done = new AtomicInteger();
        List<TextTokenizer.Encoded> all = new ArrayList<>(IntStream.range(0, texts.size())
                .parallel()
                .mapToObj(i -> {
                    Pair pair = texts.get(i);
                    TextTokenizer.Encoded one = pair.second().isEmpty()
                            ? tokenizer.encode(pair.first())
                            : tokenizer.encode(pair.first(), pair.second());
                    int count = done.incrementAndGet();
                    if (count % 256 == 0) {
                        synchronized (done) {
                            callback.onPhase("encoding", count, texts.size());
                        }
                    }
                    return one;
                })
                .toList());
        return new Texts(all, tokenizer.padding());
    }

    int count() {
        return encoded.size();
    }

    int[] ids(int index) {
        return encoded.get(index).ids();
    }

    Texts select(int[] indices) {
        return new Texts(IntStream.of(indices).mapToObj(encoded::get).toList(), padding);
    }

    /// A length that 95 % of the texts have at most, rounded up to a multiple of 16 that a model can take.
    int usualLength(int context) {
        int[] lengths =
                encoded.stream().mapToInt(text -> text.ids().length).sorted().toArray();
        int usual = lengths[Math.clamp((long) Math.ceil(0.95 * lengths.length) - 1, 0, lengths.length - 1)];
        return Math.clamp(Math.ceilDiv(usual, STEP) * STEP, 1, context);
    }

    /// How many are longer.
    int longer(int length) {
        return (int) encoded.stream().filter(text -> text.ids().length > length).count();
    }

    /// How many have that length at least: what is longer was cut to it.
    int reaching(int length) {
        return longer(length - 1);
    }

    /// Writes a text into a row of the inputs `tokens`, `mask` and, if there is one, `types`, [rows, length] each.
    void write(int index, Executor executor, int row, int length, boolean typed) {
        write(index, executor, row, length, typed, "");
    }

    /// The same where the names of the inputs begin with `prefix`.
    void write(int index, Executor executor, int row, int length, boolean typed, String prefix) {
        TextTokenizer.Encoded text = encoded.get(index);
        MemorySegment tokens = executor.input(prefix + "tokens");
        MemorySegment mask = executor.input(prefix + "mask");
        long at = (long) row * length;
        for (int t = 0; t < length; t++) {
            boolean real = t < text.ids().length;
            tokens.setAtIndex(ValueLayout.JAVA_INT, at + t, real ? text.ids()[t] : padding);
            // a text of nothing still has a token to look at
            mask.set(ValueLayout.JAVA_BYTE, at + t, (byte) (real || t == 0 ? 1 : 0));
        }
        if (typed) {
            MemorySegment types = executor.input(prefix + "types");
            for (int t = 0; t < length; t++) {
                types.setAtIndex(ValueLayout.JAVA_INT, at + t, t < text.types().length ? text.types()[t] : 0);
            }
        }
    }
}
