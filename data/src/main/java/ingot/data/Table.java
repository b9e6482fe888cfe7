package ingot.data;

import ingot.ir.IngotException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.MappingIterator;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;
import tools.jackson.dataformat.csv.CsvMapper;
import tools.jackson.dataformat.csv.CsvSchema;

/// Examples in rows, in one fixed order: those of CSV files, of files with a JSON object per line, or whole files whose
/// folder says what they are.
public record Table(String source, List<Row> rows) {
    /// Columns of a table of files.
    public static final String TEXT = "text";

    public static final String LABEL = "label";

    private static final JsonMapper JSON = JsonMapper.builder().build();

    /// How rows are written.
    public enum Format {
        /// By the names of the files: `.csv`, `.tsv`, `.jsonl`; else files in folders.
        AUTO,
        /// Comma-separated with a header line; `.tsv`: by tabs.
        CSV,
        /// A JSON object per line.
        JSONL,
        /// A row per file: column `text` is the file, column `label` the folder that it lies in.
        FILES
    }

    public Table {
        rows = List.copyOf(rows);
        if (rows.isEmpty()) {
            throw new IngotException(source + ": there are no rows in it");
        }
    }

    /// Reads the rows of a corpus. With `folders`, globs by label, files that fit one get its label and all others are
    /// left out.
    public static Table of(Corpus corpus, Format format, Map<String, List<String>> folders) {
        Format found = format == Format.AUTO ? guess(corpus) : format;
        List<Row> rows = new ArrayList<>();
        switch (found) {
            case CSV -> corpus.documents().forEach(document -> csv(document, rows));
            case JSONL -> corpus.documents().forEach(document -> lines(document, rows));
            case FILES, AUTO -> files(corpus, folders, rows);
        }
        return new Table(corpus.source(), rows);
    }

    private static Format guess(Corpus corpus) {
        if (corpus.documents().stream().allMatch(document -> ends(document, ".csv") || ends(document, ".tsv"))) {
            return Format.CSV;
        }
        boolean lines =
                corpus.documents().stream().allMatch(document -> ends(document, ".jsonl") || ends(document, ".ndjson"));
        return lines ? Format.JSONL : Format.FILES;
    }

    private static boolean ends(Document document, String extension) {
        return document.name().toLowerCase(Locale.ROOT).endsWith(extension);
    }

    private static void csv(Document document, List<Row> rows) {
        CsvSchema schema =
                CsvSchema.emptySchema().withHeader().withColumnSeparator(ends(document, ".tsv") ? '\t' : ',');
        String text = document.text().startsWith("\uFEFF") ? document.text().substring(1) : document.text();
        try (MappingIterator<Map<String, String>> records =
                new CsvMapper().readerForMapOf(String.class).with(schema).readValues(text)) {
            while (records.hasNextValue()) {
                int line = records.currentLocation().getLineNr();
                Map<String, JsonNode> values = new LinkedHashMap<>();
                records.nextValue()
                        .forEach((column, value) ->
                                values.put(column.strip(), JsonNodeFactory.instance.stringNode(value)));
                rows.add(new Row(document.name() + " line " + line, values));
            }
        } catch (JacksonException e) {
            throw new IngotException(
                    document.name() + " line " + e.getLocation().getLineNr() + ": this is no CSV: "
                            + e.getOriginalMessage(),
                    e);
        }
    }

    private static void lines(Document document, List<Row> rows) {
        int number = 0;
        for (String line : document.text().split("\n", -1)) {
            number++;
            if (line.isBlank()) {
                continue;
            }
            String where = document.name() + " line " + number;
            try {
                if (!(JSON.readTree(line) instanceof ObjectNode object)) {
                    throw new IngotException(where + ": expected a JSON object, got "
                            + line.strip()
                                    .substring(0, Math.min(40, line.strip().length())));
                }
                Map<String, JsonNode> values = new LinkedHashMap<>();
                object.properties().forEach(entry -> values.put(entry.getKey(), entry.getValue()));
                rows.add(new Row(where, values));
            } catch (JacksonException e) {
                throw new IngotException(where + ": this is no JSON: " + e.getOriginalMessage(), e);
            }
        }
    }

    private static void files(Corpus corpus, Map<String, List<String>> folders, List<Row> rows) {
        Map<String, List<Glob>> globs = new LinkedHashMap<>();
        folders.forEach((label, patterns) ->
                globs.put(label, patterns.stream().map(Glob::of).toList()));
        for (Document document : corpus.documents()) {
            String label = label(document.name(), globs);
            if (label != null) {
                Map<String, JsonNode> values = new LinkedHashMap<>();
                values.put(TEXT, JsonNodeFactory.instance.stringNode(document.text()));
                values.put(LABEL, JsonNodeFactory.instance.stringNode(label));
                rows.add(new Row(document.name(), values));
            }
        }
        if (rows.isEmpty()) {
            throw new IngotException(corpus.source() + ": no file fits the patterns of data.labels; files are called "
                    + corpus.documents().getFirst().name());
        }
    }

    private static @org.jspecify.annotations.Nullable String label(String name, Map<String, List<Glob>> globs) {
        String path = name.replace("!/", "/");
        if (globs.isEmpty()) {
            int end = path.lastIndexOf('/');
            return end < 0 ? "" : path.substring(path.lastIndexOf('/', end - 1) + 1, end);
        }
        String found = null;
        for (Map.Entry<String, List<Glob>> entry : globs.entrySet()) {
            if (Glob.accepts(entry.getValue(), path)) {
                if (found != null) {
                    throw new IngotException("data.labels: " + name + " fits the patterns of both " + found + " and "
                            + entry.getKey() + "; make them disjoint");
                }
                found = entry.getKey();
            }
        }
        return found;
    }

    /// SHA-256 over the rows, whatever files they come from.
    public String fingerprint() {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            for (Row row : rows) {
                row.values().forEach((column, value) -> {
                    for (String part : List.of(column, value.toString())) {
                        byte[] bytes = part.getBytes(StandardCharsets.UTF_8);
                        digest.update(ByteBuffer.allocate(Long.BYTES).putLong(0, bytes.length));
                        digest.update(bytes);
                    }
                });
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
