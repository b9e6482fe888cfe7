package ingot.cli;

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
}
