package ingot.data;

import java.util.Objects;

/// One named text of a corpus. `replaced` counts the malformed UTF-8 sequences that became U+FFFD while reading.
public record Document(String name, String text, int replaced) {
    public Document {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(text, "text");
        if (replaced < 0) throw new IllegalArgumentException("document " + name + ": replaced = " + replaced);
    }

    public Document(String name, String text) {
        this(name, text, 0);
    }

    /// The length of the text in UTF-8.
    public long bytes() {
        return Utf8.length(text);
    }
}
