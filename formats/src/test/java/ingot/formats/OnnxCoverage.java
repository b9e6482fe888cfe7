package ingot.formats;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The text of `docs/onnx-coverage.md`.
final class OnnxCoverage {
    private static final Pattern FAILURE = Pattern.compile("^- `([A-Za-z0-9_]+)`", Pattern.MULTILINE);

    private OnnxCoverage() {}

    static Path document() {
        for (Path at = Path.of("").toAbsolutePath(); at != null; at = at.getParent()) {
            Path candidate = at.resolve("docs/onnx-coverage.md");
            if (Files.exists(candidate) || Files.exists(at.resolve("ARCHITECTURE.md"))) {
                return candidate;
            }
        }
        throw new IllegalStateException("no checkout around " + Path.of("").toAbsolutePath());
    }

    static List<String> failures(String text) {
        List<String> names = new ArrayList<>();
        for (Matcher matcher = FAILURE.matcher(text); matcher.find(); ) {
            names.add(matcher.group(1));
        }
        return names;
    }

    /// Why a case does not pass, in one line without places of this machine.
    static String reason(OnnxCase each, RuntimeException e) {
        String name = each.name();
        if (name.startsWith("test_bernoulli") || name.startsWith("test_training_dropout")) {
            return "Random draws: the expected data are those of NumPy, which ONNX does not define.";
        } else if (name.contains("FLOAT_to_BFLOAT16")) {
            return "The expected data cut bits off where the specification rounds to nearest even.";
        } else if (name.equals("test_adam_multiple")) {
            return "The expected data use an epsilon that the node does not have.";
        } else if (name.contains("_opt") || name.equals("test_loop16_seq_none")) {
            return "Optional values are not supported.";
        } else if (name.equals("test_loop13_seq")) {
            return "An empty sequence cannot be an input of a graph.";
        }
        String text = String.valueOf(e.getMessage())
                .replaceAll("onnx: /[^ ]*/model.onnx", "The model")
                .replace('\n', ' ');
        if (text.contains("strings, complex numbers") || text.contains("is a string") || text.contains("STRING")) {
            return "Strings are not supported.";
        }
        return text.length() > 200 ? text.substring(0, 200) + "…" : text;
    }

    static String text(Set<OnnxCase> passed, Map<OnnxCase, String> failed) {
        Map<String, int[]> folders = new TreeMap<>();
        Map<String, int[]> operators = new TreeMap<>();
        passed.forEach(each -> count(each, folders, operators, 0));
        failed.keySet().forEach(each -> count(each, folders, operators, 1));
        StringBuilder text = new StringBuilder("""
            # ONNX coverage

            Written by `OnnxConformanceTest` (`-Dingot.write.coverage=true`) from the ONNX project's backend tests, Debian package
            `libonnx-testdata`: each case is imported with the shapes of its inputs, interpreted, and compared with rtol 1e-3, atol 1e-7.

            Floating types of all widths are computed in F32; a cast to a narrow one rounds. INT16 and UINT16 become I32, UINT32 and UINT64
            I64. Shapes are fixed at import: what they depend on must be given there, and control flow is resolved by it.

            | folder | pass | of |
            |---|---|---|
            """);
        folders.forEach((folder, n) -> text.append("| %s | %d | %d |\n".formatted(folder, n[0], n[0] + n[1])));
        text.append("\n## Cases that do not pass\n");
        Map<String, Set<String>> byReason = new TreeMap<>();
        failed.forEach((each, reason) ->
                byReason.computeIfAbsent(reason, _ -> new TreeSet<>()).add(each.name()));
        byReason.forEach((reason, names) -> {
            text.append("\n").append(reason).append("\n\n");
            names.forEach(name -> text.append("- `").append(name).append("`\n"));
        });
        text.append("\n## Passing cases by operator\n\n| operator | pass | of |\n|---|---|---|\n");
        operators.forEach((operator, n) -> text.append("| %s | %d | %d |\n".formatted(operator, n[0], n[0] + n[1])));
        return text.toString();
    }

    private static void count(OnnxCase each, Map<String, int[]> folders, Map<String, int[]> operators, int column) {
        folders.computeIfAbsent(each.folder(), _ -> new int[2])[column]++;
        if (each.folder().equals("node")) {
            operators.computeIfAbsent(each.operator(), _ -> new int[2])[column]++;
        }
    }
}
