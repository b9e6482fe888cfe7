package ingot.data;

import ingot.ir.IngotException;
import java.util.List;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/// Path patterns with `/` on every system: `*` and `?` stay inside a name, `**/` is any number of folders (also
/// none), `{a,b}` is a choice, `[a-z]` a set. A pattern without `/` is about the file name alone; `!pattern` excludes.
final class Glob {
    private final String text;
    private final boolean exclude;
    private final Pattern pattern;

    private Glob(String text, boolean exclude, Pattern pattern) {
        this.text = text;
        this.exclude = exclude;
        this.pattern = pattern;
    }

    static Glob of(String text) {
        boolean exclude = text.startsWith("!");
        String body = exclude ? text.substring(1) : text;
        if (body.isBlank()) throw new IngotException("glob '" + text + "' is empty; write for example **/*.java");
        if (!body.contains("/")) body = "**/" + body;
        try {
            return new Glob(text, exclude, Pattern.compile(regex(text, body), Pattern.DOTALL));
        } catch (PatternSyntaxException e) {
            throw new IngotException("glob '" + text + "' is malformed: " + e.getDescription(), e);
        }
    }

    /// Whether a path passes: some including glob matches (or there is none) and no excluding one does.
    static boolean accepts(List<Glob> globs, String path) {
        boolean included = globs.stream().allMatch(g -> g.exclude);
        for (var glob : globs) {
            if (!glob.pattern.matcher(path).matches()) continue;
            if (glob.exclude) return false;
            included = true;
        }
        return included;
    }

    private static String regex(String text, String glob) {
        var out = new StringBuilder();
        boolean inChoice = false;
        for (int i = 0; i < glob.length(); i++) {
            char c = glob.charAt(i);
            switch (c) {
                case '*' -> {
                    if (!glob.startsWith("**", i)) {
                        out.append("[^/]*");
                    } else if (glob.startsWith("**/", i) && (i == 0 || glob.charAt(i - 1) == '/')) {
                        out.append("(?:[^/]*/)*");
                        i += 2;
                    } else {
                        out.append(".*");
                        i++;
                    }
                }
                case '?' -> out.append("[^/]");
                case '{' -> {
                    if (inChoice || glob.indexOf('}', i) < 0) {
                        throw new IngotException("glob '" + text + "': '{' at " + i + " is not closed by one '}'");
                    }
                    inChoice = true;
                    out.append("(?:");
                }
                case '}' -> {
                    out.append(inChoice ? ")" : "\\}");
                    inChoice = false;
                }
                case ',' -> out.append(inChoice ? "|" : ",");
                case '[' -> {
                    int end = glob.indexOf(']', i + 2);
                    if (end < 0) throw new IngotException("glob '" + text + "': '[' at " + i + " is not closed by ']'");
                    var set = glob.substring(i + 1, end)
                            .replace("\\", "\\\\")
                            .replace("[", "\\[")
                            .replace("&", "\\&");
                    out.append('[')
                            .append(set.startsWith("!") ? "^" + set.substring(1) : set)
                            .append(']');
                    i = end;
                }
                default -> {
                    if (!Character.isLetterOrDigit(c) && c < 0x80) out.append('\\');
                    out.append(c);
                }
            }
        }
        return out.toString();
    }

    @Override
    public String toString() {
        return text;
    }
}
