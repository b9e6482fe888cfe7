package ingot.data;

import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// What a person reads of an e-mail (RFC 5322, MIME RFC 2045 to 2047): sender, subject, and the text without headers,
/// encodings, tags and attachments.
///
/// Whatever is malformed is taken as it stands: spam often is.
public final class Mail {
    private static final Pattern WORD = Pattern.compile("=\\?([^?\\s]+)\\?([bBqQ])\\?([^?]*)\\?=(?:\\s+(?==\\?))?");
    private static final Pattern PARAMETER = Pattern.compile(";\\s*([a-z]+)\\s*=\\s*(\"[^\"]*\"|[^;\\s]+)");
    private static final int DEEPEST = 8;

    private Mail() {}

    /// `sender`, `subject` and text, a line break between them.
    public static String read(String raw) {
        Part mail = Part.of(raw);
        String sender = words(mail.header("from"));
        String subject = words(mail.header("subject"));
        return (sender + "\n" + subject + "\n" + text(mail, 0).strip()).strip();
    }

    /// Headers by their name in small letters, and what follows the empty line.
    private record Part(Map<String, String> headers, String body) {
        static Part of(String raw) {
            Map<String, String> headers = new LinkedHashMap<>();
            String text = raw.replace("\r\n", "\n");
            int end = text.indexOf("\n\n");
            String head = end < 0 ? text : text.substring(0, end);
            String name = "";
            for (String line : head.split("\n", -1)) {
                int colon = line.indexOf(':');
                if (!line.isEmpty() && (line.charAt(0) == ' ' || line.charAt(0) == '\t')) {
                    headers.computeIfPresent(name, (_, value) -> value + " " + line.strip());
                } else if (colon > 0 && line.substring(0, colon).indexOf(' ') < 0) {
                    name = line.substring(0, colon).toLowerCase(Locale.ROOT);
                    headers.putIfAbsent(name, line.substring(colon + 1).strip());
                } else if (!line.startsWith("From ") && !line.startsWith(">From ")) {
                    return headers.isEmpty()
                            ? new Part(Map.of(), text)
                            : new Part(headers, text.substring(head.length()));
                }
            }
            return headers.isEmpty()
                    ? new Part(Map.of(), text)
                    : new Part(headers, end < 0 ? "" : text.substring(end + 2));
        }

        String header(String name) {
            return headers.getOrDefault(name, "");
        }

        String type() {
            String type = header("content-type").split(";", 2)[0].strip().toLowerCase(Locale.ROOT);
            return type.isEmpty() ? "text/plain" : type;
        }

        String parameter(String name) {
            Matcher matcher = PARAMETER.matcher(header("content-type"));
            while (matcher.find()) {
                if (matcher.group(1).equalsIgnoreCase(name)) {
                    return matcher.group(2).replace("\"", "");
                }
            }
            return "";
        }
    }

    private static String text(Part part, int depth) {
        String boundary = part.parameter("boundary");
        if (part.type().startsWith("multipart/") && !boundary.isEmpty() && depth < DEEPEST) {
            return parts(part, boundary, depth);
        }
        if (part.type().startsWith("message/") && depth < DEEPEST) {
            return text(Part.of(part.body()), depth + 1);
        }
        if (!part.type().startsWith("text")) {
            return "";
        }
        String decoded = decoded(part);
        return part.type().equals("text/html")
                        || decoded.stripLeading().toLowerCase(Locale.ROOT).startsWith("<html")
                ? withoutTags(decoded)
                : decoded;
    }

    /// Of alternatives the first that says something; else all of them.
    private static String parts(Part whole, String boundary, int depth) {
        List<String> texts = new ArrayList<>();
        String[] pieces = whole.body().split(Pattern.quote("--" + boundary), -1);
        for (int i = 1; i < pieces.length && !pieces[i].startsWith("--"); i++) {
            String piece = pieces[i].startsWith("\n") ? pieces[i].substring(1) : pieces[i];
            // without headers the piece begins with its empty line
            Part part = piece.startsWith("\n") ? new Part(Map.of(), piece.substring(1)) : Part.of(piece);
            String text = text(part, depth + 1).strip();
            if (!text.isEmpty()) {
                texts.add(text);
            }
        }
        boolean alternatives = whole.type().equals("multipart/alternative");
        return texts.isEmpty() ? "" : alternatives ? texts.getFirst() : String.join("\n", texts);
    }

    private static String decoded(Part part) {
        String encoding = part.header("content-transfer-encoding").toLowerCase(Locale.ROOT);
        Charset charset = charset(part.parameter("charset"));
        return switch (encoding) {
            case "base64" -> new String(base64(part.body()), charset);
            case "quoted-printable" -> quoted(part.body(), charset, false);
            default -> part.body();
        };
    }

    private static byte[] base64(String text) {
        String letters = text.replaceAll("[^A-Za-z0-9+/]", "");
        try {
            return Base64.getDecoder().decode(letters.length() % 4 == 1 ? letters.substring(1) : letters);
        } catch (IllegalArgumentException e) {
            return new byte[0];
        }
    }

    /// `=E9` is a byte, `=` before a line break nothing; in headers `_` is a space.
    private static String quoted(String text, Charset charset, boolean header) {
        byte[] from = text.getBytes(StandardCharsets.UTF_8);
        byte[] to = new byte[from.length];
        int count = 0;
        boolean bytes = false;
        for (int i = 0; i < from.length; i++) {
            if (from[i] == '=' && i + 1 < from.length && from[i + 1] == '\n') {
                i++;
            } else if (from[i] == '=' && i + 2 < from.length && hex(from[i + 1]) >= 0 && hex(from[i + 2]) >= 0) {
                to[count++] = (byte) (hex(from[i + 1]) << 4 | hex(from[i + 2]));
                bytes |= to[count - 1] < 0;
                i += 2;
            } else {
                to[count++] = header && from[i] == '_' ? (byte) ' ' : from[i];
            }
        }
        return new String(to, 0, count, bytes ? charset : StandardCharsets.UTF_8);
    }

    private static int hex(byte letter) {
        return Character.digit(letter, 16);
    }

    private static Charset charset(String name) {
        try {
            return name.isEmpty() ? StandardCharsets.UTF_8 : Charset.forName(name);
        } catch (IllegalArgumentException e) {
            return StandardCharsets.ISO_8859_1;
        }
    }

    /// Encoded words of a header: `=?iso-8859-1?q?caf=E9?=`.
    private static String words(String header) {
        return WORD.matcher(header).replaceAll(match -> {
            Charset charset = charset(match.group(1));
            String text = match.group(2).equalsIgnoreCase("b")
                    ? new String(base64(match.group(3)), charset)
                    : quoted(match.group(3), charset, true);
            return Matcher.quoteReplacement(text);
        });
    }

    private static String withoutTags(String html) {
        return html.replaceAll("(?is)<(script|style)\\b.*?</\\1\\s*>", " ")
                .replaceAll("(?s)<!--.*?-->", "")
                .replaceAll("(?s)<[a-zA-Z/!][^>]*>", " ")
                .replace("&nbsp;", " ")
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&amp;", "&")
                .replaceAll("[ \t]+", " ")
                .replaceAll("\\s*\n\\s*", "\n");
    }
}
