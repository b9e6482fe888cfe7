package ingot.train;

import ingot.compiler.Backend;
import ingot.data.TextTokenizer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Continues texts with a trained model.
///
/// Keys and values of the past are kept, so every further token costs one token's work. When the context is full, the
/// newer half of it is read again from position 0 and the text goes on.
///
/// ```java
/// try (var generator = TextGenerator.open(Path.of("runs/quickstart"), backend)) {
///     generator.generate("public static ", Sampling.DEFAULT, System.out::print);
/// }
/// ```
public final class TextGenerator implements AutoCloseable {
    private static final int CAPACITY_STEP = 256;

    private final ModelFolder folder;
    private final TextTokenizer tokenizer;
    private final Backend backend;
    private @Nullable Decoder last;

    /// What a generation did.
    ///
    /// @param promptTokens tokens of the prompt that were read
    /// @param droppedTokens tokens at the start of the prompt that did not fit the context and were left out
    /// @param tokens tokens generated, without the end of text
    /// @param ended the model ended the text; false when it reached the most tokens allowed
    /// @param promptSeconds time to read the prompt
    /// @param seconds time to generate
    public record Generation(
            int promptTokens, int droppedTokens, int tokens, boolean ended, double promptSeconds, double seconds) {
        public double tokensPerSecond() {
            return seconds == 0 ? 0 : tokens / seconds;
        }
    }

    private TextGenerator(ModelFolder folder, TextTokenizer tokenizer, Backend backend) {
        this.folder = folder;
        this.tokenizer = tokenizer;
        this.backend = backend;
    }

    /// Opens a run folder or any Hugging Face folder of a causal language model: config.json, model.safetensors,
    /// tokenizer.json.
    public static TextGenerator open(Path folder, Backend backend) {
        // the native library of tokenizers takes as long to load as a small model
        CompletableFuture<TextTokenizer> reading = CompletableFuture.supplyAsync(() -> TextTokenizer.open(folder));
        ModelFolder opened;
        try {
            opened = ModelFolder.open(folder);
        } catch (RuntimeException e) {
            var _ = reading.thenAccept(TextTokenizer::close);
            throw e;
        }
        try {
            TextTokenizer tokenizer = joined(reading);
            try {
                opened.load(tokenizer.vocabularySize());
                return new TextGenerator(opened, tokenizer, backend);
            } catch (RuntimeException e) {
                tokenizer.close();
                throw e;
            }
        } catch (RuntimeException e) {
            opened.close();
            throw e;
        }
    }

    private static TextTokenizer joined(CompletableFuture<TextTokenizer> reading) {
        try {
            return reading.join();
        } catch (CompletionException e) {
            throw e.getCause() instanceof RuntimeException cause ? cause : e;
        }
    }

    /// Most tokens the model sees at once.
    public int context() {
        return folder.model().context();
    }

    /// A decoder for `tokens` tokens, or for the context if that is less: the last one if it is long enough.
    private Decoder decoder(long tokens) {
        int needed = (int) Math.min(context(), (tokens + CAPACITY_STEP - 1) / CAPACITY_STEP * CAPACITY_STEP);
        if (last != null && last.capacity() >= needed) {
            return last;
        }
        if (last != null) {
            last.close();
        }
        last = new Decoder(folder.model(), needed, backend, folder.store());
        return last;
    }

    /// Continues `prompt`; pieces of text go to `out` as soon as they are complete characters.
    ///
    /// Of a prompt longer than the context the end is read. An empty prompt begins a new document.
    public Generation generate(String prompt, Sampling sampling, Consumer<String> out) {
        long start = System.nanoTime();
        int[] all = tokenizer.encode(prompt).ids();
        Set<Integer> ends = folder.files().endTokens();
        int[] history = new int[Math.addExact(Math.max(1, all.length), sampling.maxTokens())];
        history[0] = ends.isEmpty() ? 0 : ends.iterator().next();
        System.arraycopy(all, 0, history, 0, all.length);
        int length = Math.max(1, all.length);
        Decoder decoder = decoder(history.length);
        int dropped = Math.max(0, length - decoder.capacity());
        decoder.reset();
        float[] logits = decoder.append(Arrays.copyOfRange(history, dropped, length));
        long prompted = System.nanoTime();
        TextTokenizer.Pieces text = tokenizer.pieces();
        int known = tokenizer.vocabularySize();
        int count = 0;
        boolean ended = false;
        while (count < sampling.maxTokens()) {
            int token = sampling.choose(known < logits.length ? Arrays.copyOf(logits, known) : logits, count);
            if (ends.contains(token)) {
                ended = true;
                break;
            }
            history[length++] = token;
            count++;
            say(out, text.next(token));
            if (count < sampling.maxTokens()) {
                logits = follow(decoder, history, length);
            }
        }
        say(out, text.end());
        return new Generation(
                all.length - Math.min(all.length, dropped),
                dropped,
                count,
                ended,
                (prompted - start) / 1e9,
                (System.nanoTime() - prompted) / 1e9);
    }

    /// The logits after the last of `length` tokens, of which the decoder has seen all but that one.
    private static float[] follow(Decoder decoder, int[] history, int length) {
        if (decoder.position() < decoder.capacity()) {
            return decoder.append(history[length - 1]);
        }
        decoder.reset();
        int kept = Math.max(1, decoder.capacity() / 2);
        return decoder.append(Arrays.copyOfRange(history, length - kept, length));
    }

    private static void say(Consumer<String> out, String piece) {
        if (!piece.isEmpty()) {
            out.accept(piece);
        }
    }

    @Override
    public void close() {
        if (last != null) {
            last.close();
        }
        tokenizer.close();
        folder.close();
    }
}
