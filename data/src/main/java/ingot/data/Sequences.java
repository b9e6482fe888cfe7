package ingot.data;

import ingot.ir.IngotException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/// A corpus as one row of token ids, cut into sequences of equal length: `inputs = ids[i, i+T)` and
/// `targets = ids[i+1, i+T]`. Documents stand in the order of the corpus with `<|endoftext|>` before, between and
/// after them; every id but the first is a target once, and the last ids that fill no sequence are left out.
///
/// Ids below 65,536 take two bytes each.
public final class Sequences {
    private final int length;
    private final int count;
    private final int tokens;
    private final long targetBytes;
    private final short[] narrow; // one of the two is empty
    private final int[] wide;

    private Sequences(int length, int tokens, long targetBytes, short[] narrow, int[] wide) {
        this.length = length;
        this.count = (tokens - 1) / length;
        this.tokens = tokens;
        this.targetBytes = targetBytes;
        this.narrow = narrow;
        this.wide = wide;
    }

    /// Encodes a corpus on all cores and packs it into sequences of `length` tokens; progress counts bytes of text.
    public static Sequences of(Corpus corpus, Tokenizer tokenizer, int length, Progress progress) {
        if (length < 1) throw new IngotException("sequence length " + length + ": expected at least 1");
        var documents = corpus.documents();
        long total = corpus.bytes();
        var done = new AtomicLong();
        var encoded = IntStream.range(0, documents.size())
                .parallel()
                .mapToObj(i -> {
                    var ids = tokenizer.encode(documents.get(i).text());
                    long bytes = done.addAndGet(documents.get(i).bytes());
                    synchronized (done) {
                        progress.at(Math.min(bytes, total), total);
                    }
                    return ids;
                })
                .toArray(int[][]::new);
        return pack(corpus.source(), encoded, tokenizer, length);
    }

    private static Sequences pack(String source, int[][] documents, Tokenizer tokenizer, int length) {
        long tokens = 1;
        for (var ids : documents) tokens += ids.length + 1L;
        if (tokens > Integer.MAX_VALUE - 16) {
            throw new IngotException(source + ": " + tokens + " tokens; one corpus may have up to 2,147,483,631");
        }
        if (tokens - 1 < length) {
            throw new IngotException(source + ": " + tokens + " tokens do not fill one sequence of " + length
                    + " and its next token; use more text or a shorter sequence");
        }
        boolean small = tokenizer.vocabularySize() <= 1 << Character.SIZE;
        var narrow = new short[small ? (int) tokens : 0];
        var wide = new int[small ? 0 : (int) tokens];
        int used = (int) ((tokens - 1) / length) * length + 1;
        int at = 0;
        long bytes = 0;
        put(narrow, wide, at++, tokenizer.endOfText());
        for (var ids : documents) {
            for (int id : ids) {
                if (at < used) bytes += tokenizer.byteLength(id);
                put(narrow, wide, at++, id);
            }
            put(narrow, wide, at++, tokenizer.endOfText());
        }
        return new Sequences(length, (int) tokens, bytes, narrow, wide);
    }

    private static void put(short[] narrow, int[] wide, int at, int id) {
        if (narrow.length > 0) {
            narrow[at] = (short) id;
        } else {
            wide[at] = id;
        }
    }

    /// Tokens of one sequence, T.
    public int length() {
        return length;
    }

    /// How many sequences there are.
    public int count() {
        return count;
    }

    /// All tokens, separators and the unused end included.
    public int tokens() {
        return tokens;
    }

    /// Bytes of text that the targets of all sequences stand for; separators stand for none.
    public long targetBytes() {
        return targetBytes;
    }

    /// Bytes of text for one target token.
    public double bytesPerToken() {
        return (double) targetBytes / ((long) count * length);
    }

    /// Bits the model needs for one byte of text, from the sum of the cross entropies (in nats) of every target of
    /// every sequence.
    public double bitsPerByte(double nats) {
        return nats / Math.log(2) / targetBytes;
    }

    /// The id at a place of the whole row.
    public int id(int at) {
        return narrow.length > 0 ? Short.toUnsignedInt(narrow[at]) : wide[at];
    }

    /// Writes the inputs and targets of one sequence, T ids each, from these indices on.
    public void read(int sequence, int[] inputs, int inputsFrom, int[] targets, int targetsFrom) {
        int first = first(sequence);
        for (int t = 0; t < length; t++) {
            inputs[inputsFrom + t] = id(first + t);
            targets[targetsFrom + t] = id(first + t + 1);
        }
    }

    /// Writes the inputs and targets of one sequence as I32, T ids each, from these byte offsets on.
    public void read(int sequence, MemorySegment inputs, long inputsOffset, MemorySegment targets, long targetsOffset) {
        int first = first(sequence);
        for (int t = 0; t < length; t++) {
            inputs.set(ValueLayout.JAVA_INT_UNALIGNED, inputsOffset + 4L * t, id(first + t));
            targets.set(ValueLayout.JAVA_INT_UNALIGNED, targetsOffset + 4L * t, id(first + t + 1));
        }
    }

    private int first(int sequence) {
        if (sequence < 0 || sequence >= count) {
            throw new IndexOutOfBoundsException("sequence " + sequence + " of " + count);
        }
        return sequence * length;
    }
}
