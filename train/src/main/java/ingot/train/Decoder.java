package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Buffer;
import ingot.compiler.Compiler;
import ingot.nn.LanguageModel;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.WeightStore;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/// One sequence that grows token by token over a key/value cache.
///
/// Two programs share the cache: one takes up to 64 tokens at a time, for prompts, one a single token, also of short
/// prompts. Which of them read a token changes no bit of the logits.
final class Decoder implements AutoCloseable {
    private static final int CHUNK = 64;
    private static final int FEW = 8;

    private final int capacity;
    private final int vocabulary;
    private final Arena arena = Arena.ofShared();
    private final Map<String, MemorySegment> caches = new LinkedHashMap<>();
    private final int chunk;
    private final IntFunction<Executor> executors;
    private @Nullable Executor several;
    private final Executor single;
    private int position;

    /// A sequence of at most `capacity` tokens; a token costs attention over all of them.
    Decoder(LanguageModel model, int capacity, Backend backend, WeightStore store) {
        this.capacity = capacity;
        vocabulary = model.vocabulary();
        chunk = Math.min(CHUNK, capacity);
        Set<String> bound = new HashSet<>();
        for (LanguageModel.CacheEntry entry : model.cache(1, capacity)) {
            caches.put(entry.name(), arena.allocate(entry.type().bytes(), 64));
            bound.add("cache." + entry.name());
        }
        executors =
                count -> new Executor(Compiler.inference(model.decodeGraph(1, count, capacity)), backend, store, bound);
        single = executors.apply(1);
    }

    /// Most tokens the sequence can have.
    int capacity() {
        return capacity;
    }

    /// Tokens the sequence has.
    int position() {
        return position;
    }

    /// Starts a new sequence.
    void reset() {
        position = 0;
    }

    /// Appends tokens, at least one; the logits of what follows them.
    float[] append(int... tokens) {
        if (tokens.length == 0 || position + tokens.length > capacity) {
            throw new IllegalArgumentException("decoder: 1 to " + (capacity - position) + " tokens fit after "
                    + position + ", got " + tokens.length);
        }
        Executor last = single;
        for (int from = 0; from < tokens.length; ) {
            int left = tokens.length - from;
            int count = left <= FEW ? 1 : Math.min(chunk, left);
            last = count == 1 ? single : several();
            run(last, tokens, from, count);
            from += count;
        }
        float[] logits = new float[vocabulary];
        MemorySegment.copy(last.output("logits"), ValueLayout.JAVA_FLOAT, 0, logits, 0, vocabulary);
        return logits;
    }

    private Executor several() {
        if (several == null) {
            several = executors.apply(chunk);
        }
        return several;
    }

    private void run(Executor executor, int[] tokens, int from, int count) {
        MemorySegment input = executor.input("tokens");
        int size = Math.toIntExact(input.byteSize() / 4);
        for (int i = 0; i < size; i++) {
            input.setAtIndex(ValueLayout.JAVA_INT, i, tokens[from + Math.min(i, count - 1)]);
        }
        executor.input("position").set(ValueLayout.JAVA_INT, 0, position);
        executor.input("last").set(ValueLayout.JAVA_INT, 0, count - 1);
        caches.forEach((name, memory) -> executor.bind(new Buffer.Input("cache." + name), memory));
        executor.run(StageUpdates.NONE);
        caches.forEach((name, memory) -> {
            long row = memory.byteSize() / capacity;
            MemorySegment.copy(executor.output(name), 0, memory, position * row, count * row);
        });
        position += count;
    }

    @Override
    public void close() {
        single.close();
        if (several != null) {
            several.close();
        }
        arena.close();
    }
}
