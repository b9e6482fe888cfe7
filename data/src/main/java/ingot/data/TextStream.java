package ingot.data;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;

/// Turns ids into text as they come; a character that spans tokens appears when its last byte does.
public final class TextStream {
    private final Tokenizer tokenizer;
    private final CharsetDecoder decoder = Utf8.decoder();
    private byte[] pending = new byte[0]; // the beginning of a character, at most three bytes

    TextStream(Tokenizer tokenizer) {
        this.tokenizer = tokenizer;
    }

    /// The text that `id` completes; may be empty.
    public String next(int id) {
        var token = tokenizer.bytes(id);
        var in = ByteBuffer.allocate(pending.length + token.length)
                .put(pending)
                .put(token)
                .flip();
        var out = CharBuffer.allocate(in.remaining() + 1);
        decoder.decode(in, out, false);
        pending = new byte[in.remaining()];
        in.get(pending);
        return out.flip().toString();
    }

    /// What is left at the end: empty, or U+FFFD for a character that was never finished.
    public String end() {
        var out = CharBuffer.allocate(4);
        decoder.decode(ByteBuffer.wrap(pending), out, true);
        decoder.flush(out);
        decoder.reset();
        pending = new byte[0];
        return out.flip().toString();
    }
}
