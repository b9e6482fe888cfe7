package ingot.data;

import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.JsonNode;

/// One example of a table: values by column, read with their types.
///
/// @param where for messages: `mails.csv line 12`
public record Row(String where, Map<String, JsonNode> values) {
    public Row {
        values = new LinkedHashMap<>(values);
    }

    public boolean has(String column) {
        JsonNode value = values.get(column);
        return value != null && !value.isNull();
    }

    /// A text, or a number or truth value as it is written.
    public String text(String column) {
        JsonNode value = value(column);
        if (value.isContainer()) {
            throw wrong(column, "a text", value);
        }
        return value.asString();
    }

    /// A number, also one that is written as a text.
    public float number(String column) {
        JsonNode value = value(column);
        try {
            float number = value.isContainer()
                    ? Float.NaN
                    : Float.parseFloat(value.asString().strip());
            if (Float.isFinite(number)) {
                return number;
            }
        } catch (NumberFormatException e) {
            // said below
        }
        throw wrong(column, "a number", value);
    }

    /// A list of texts; a text is cut at its spaces.
    public List<String> texts(String column) {
        JsonNode value = value(column);
        if (value.isString()) {
            return List.of(value.asString().strip().split("\\s+"));
        }
        if (!value.isArray()) {
            throw wrong(column, "a list of texts", value);
        }
        List<String> texts = new ArrayList<>();
        for (JsonNode item : value) {
            if (item.isContainer() || item.isNull()) {
                throw wrong(column, "a list of texts", value);
            }
            texts.add(item.asString());
        }
        return texts;
    }

    /// A list of objects as rows.
    public List<Row> rows(String column) {
        JsonNode value = value(column);
        List<Row> rows = new ArrayList<>();
        for (JsonNode item : value) {
            if (!item.isObject()) {
                throw wrong(column, "a list of objects", value);
            }
            Map<String, JsonNode> values = new LinkedHashMap<>();
            item.properties().forEach(entry -> values.put(entry.getKey(), entry.getValue()));
            rows.add(new Row(where + ", " + column + " " + (rows.size() + 1), values));
        }
        if (!value.isArray()) {
            throw wrong(column, "a list of objects", value);
        }
        return rows;
    }

    private JsonNode value(String column) {
        JsonNode value = values.get(column);
        if (value == null) {
            throw new IngotException(where + ": there is no column " + column
                    + Nearest.close(column, values.keySet())
                            .map(near -> ", did you mean " + near + "?")
                            .orElse(";") + " the columns are " + String.join(", ", values.keySet()));
        }
        if (value.isNull()) {
            throw new IngotException(where + ": column " + column + " is empty");
        }
        return value;
    }

    private IngotException wrong(String column, String expected, JsonNode value) {
        String text = value.toString();
        return new IngotException(where + ": column " + column + " expected " + expected + ", got "
                + (text.length() > 80 ? text.substring(0, 80) + "…" : text));
    }
}
