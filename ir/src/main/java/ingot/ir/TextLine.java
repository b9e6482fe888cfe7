package ingot.ir;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;

/// A cursor over one line of the text form. Blanks between tokens do not matter.
final class TextLine {
    private final String text;
    private final int number;
    private int at;

    TextLine(String text, int number) {
        this.text = text;
        this.number = number;
    }

    boolean atEnd() {
        blanks();
        return at == text.length();
    }

    /// Skips `token` if it comes next.
    boolean take(String token) {
        blanks();
        if (!text.startsWith(token, at)) {
            return false;
        }
        at += token.length();
        return true;
    }

    void expect(String token) {
        if (!take(token)) {
            throw failure("expected " + token);
        }
    }

    /// Characters up to a blank or one of `, = # [ ] { }`.
    String word() {
        return until(" ,=#[]{}");
    }

    /// Characters up to a blank.
    String chunk() {
        return until(" ");
    }

    private String until(String stops) {
        blanks();
        int start = at;
        while (at < text.length() && stops.indexOf(text.charAt(at)) < 0) {
            at++;
        }
        if (at == start) {
            throw failure("expected a word");
        }
        return text.substring(start, at);
    }

    /// A bare or quoted name.
    String name() {
        blanks();
        if (at == text.length() || text.charAt(at) != '"') {
            return word();
        }
        StringBuilder name = new StringBuilder();
        for (at++; at < text.length() && text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            if (c == '\\' && at + 1 < text.length()) {
                c = text.charAt(++at);
                if (c == 'u' && at + 4 < text.length()) {
                    c = (char) Integer.parseInt(text, at + 1, at + 5, 16);
                    at += 4;
                }
            }
            name.append(c);
        }
        expect("\"");
        return name.toString();
    }

    int integer() {
        String word = word();
        try {
            return Integer.parseInt(word);
        } catch (NumberFormatException e) {
            throw new IngotException("text form, line " + number + ": " + word + " is no integer", e);
        }
    }

    double real() {
        String word = word();
        try {
            return Double.parseDouble(word);
        } catch (NumberFormatException e) {
            throw new IngotException("text form, line " + number + ": " + word + " is no number", e);
        }
    }

    List<Integer> list() {
        expect("[");
        List<Integer> list = new ArrayList<>();
        if (take("]")) {
            return list;
        }
        do {
            list.add(integer());
        } while (take(","));
        expect("]");
        return list;
    }

    Type type() {
        String word = word();
        DType dtype = Arrays.stream(DType.values())
                .filter(d -> d.text().equals(word))
                .findFirst()
                .orElseThrow(() -> failure("unknown type " + word));
        return new Type(dtype, Shape.of(list()));
    }

    /// A reference `%3`.
    Value value(GraphBuilder b) {
        expect("%");
        int id = integer();
        if (id < 0 || id >= b.values().size()) {
            throw failure("%" + id + " is not defined above");
        }
        return b.values().get(id);
    }

    List<Value> values(GraphBuilder b) {
        List<Value> values = new ArrayList<>();
        while (!atEnd() && text.charAt(at) == '%') {
            values.add(value(b));
        }
        return values;
    }

    /// The `key=value` pairs up to the end or the scope.
    Fields fields() {
        Fields fields = new Fields();
        while (!atEnd() && !text.startsWith("//", at)) {
            int start = at;
            while (at < text.length() && text.charAt(at) != '=') {
                at++;
            }
            String key = text.substring(start, at);
            expect("=");
            blanks();
            boolean list = at < text.length() && text.charAt(at) == '[';
            fields.values.put(key, list ? list() : List.of(integer()));
        }
        return fields;
    }

    /// What stands behind `//`, or an empty string; nothing else may be left.
    String scope() {
        if (take("//")) {
            return text.substring(at).strip();
        }
        if (!atEnd()) {
            throw failure("unexpected");
        }
        return "";
    }

    private void blanks() {
        while (at < text.length() && text.charAt(at) == ' ') {
            at++;
        }
    }

    private IngotException failure(String message) {
        return new IngotException("text form, line " + number + ": " + message + " at \"" + text.substring(at) + "\"");
    }

    /// The attributes of one op.
    final class Fields {
        private final TreeMap<String, List<Integer>> values = new TreeMap<>();

        List<Integer> list(String key) {
            List<Integer> list = values.remove(key);
            if (list == null) {
                throw failure("expected " + key + "=");
            }
            return list;
        }

        int integer(String key) {
            return list(key).getFirst();
        }

        int orOne(String key) {
            return values.containsKey(key) ? integer(key) : 1;
        }

        Op.Window window() {
            return new Op.Window(
                    list("strides"), list("low"), list("high"), list("input_dilation"), list("window_dilation"));
        }

        void allUsed() {
            if (!values.isEmpty()) {
                throw failure("unknown attributes " + values.keySet());
            }
        }
    }
}
