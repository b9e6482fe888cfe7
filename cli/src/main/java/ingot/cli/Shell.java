package ingot.cli;

import java.util.ArrayList;
import java.util.List;

/// Commands to copy and paste.
final class Shell {
    private Shell() {}

    /// The way this program was called.
    static String ingot() {
        return quote(System.getProperty("ingot.command", "./ingot"));
    }

    /// One word of a POSIX shell, quoted if it must be.
    static String quote(String word) {
        return word.matches("[A-Za-z0-9_@%+=:,./-]+") ? word : "'" + word.replace("'", "'\\''") + "'";
    }

    /// The command that trains with a configuration, or continues what it began.
    static String again(String verb, String file, MemoryOption memory, List<String> overrides) {
        List<String> words = new ArrayList<>(List.of(ingot(), verb, quote(file)));
        words.addAll(memory.words());
        overrides.forEach(word -> words.add(quote(word)));
        return String.join(" ", words);
    }
}
