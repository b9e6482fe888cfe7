package ingot.train;

import ingot.compiler.Backend;
import ingot.data.TextStream;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.Consumer;

/// Continues texts with a trained model.
///
/// Keys and values of the past are kept, so every further token costs one token's work. The context of a GPT-2 has
/// fixed positions: when it is full, the newer half of it is read again from position 0 and the text goes on.
///
/// ```java
/// try (var generator = TextGenerator.open(Path.of("runs/quickstart"), backend)) {
///     generator.generate("public static ", Sampling.DEFAULT, System.out::print);
/// }
/// ```
public final class TextGenerator implements AutoCloseable {
    private final ModelFolder folder;
    private final Decoder decoder;

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

    private TextGenerator(ModelFolder folder, Decoder decoder) {
        this.folder = folder;
        this.decoder = decoder;
    }

    /// Opens a run folder or any Hugging Face GPT-2 folder: config.json, model.safetensors, tokenizer.json.
    public static TextGenerator open(Path folder, Backend backend) {
        ModelFolder opened = ModelFolder.open(folder);
        try {
            return new TextGenerator(opened, new Decoder(opened.model(), backend, opened.store()));
        } catch (RuntimeException e) {
            opened.close();
            throw e;
        }
    }

    /// Most tokens the model sees at once.
    public int context() {
        return decoder.capacity();
    }

    /// Continues `prompt`; pieces of text go to `out` as soon as they are complete characters.
    ///
    /// Of a prompt longer than the context the end is read. An empty prompt begins a new document.
    public Generation generate(String prompt, Sampling sampling, Consumer<String> out) {
        long start = System.nanoTime();
        int[] all = folder.tokenizer().encode(prompt);
        int end = folder.tokenizer().endOfText();
        int[] history = new int[Math.addExact(Math.max(1, all.length), sampling.maxTokens())];
        history[0] = end;
        System.arraycopy(all, 0, history, 0, all.length);
        int length = Math.max(1, all.length);
        int dropped = Math.max(0, length - decoder.capacity());
        decoder.reset();
        float[] logits = decoder.append(Arrays.copyOfRange(history, dropped, length));
        long prompted = System.nanoTime();
        TextStream text = folder.tokenizer().stream();
        int known = folder.tokenizer().vocabularySize();
        int count = 0;
        boolean ended = false;
        while (count < sampling.maxTokens()) {
            int token = sampling.choose(known < logits.length ? Arrays.copyOf(logits, known) : logits, count);
            if (token == end) {
                ended = true;
                break;
            }
            history[length++] = token;
            count++;
            say(out, text.next(token));
            if (count < sampling.maxTokens()) {
                logits = follow(history, length);
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
    private float[] follow(int[] history, int length) {
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
        decoder.close();
        folder.close();
    }
}
