package ingot.cli;

import ingot.formats.ModelFile;
import ingot.formats.OnnxBinding;
import ingot.formats.OnnxImport;
import ingot.formats.OnnxModel;
import ingot.formats.OnnxReport;
import ingot.ir.Graph;
import ingot.ir.Type;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot import`.
@Command(
        name = "import",
        mixinStandardHelpOptions = true,
        header = "Says what an ONNX model is, and whether it can be used here.",
        description = {
            "",
            "Names all operators that have no meaning here at once, with their nodes; exit",
            "status 1 if there are any. With --size the graph is built too. Reads no weights.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot import model.onnx",
            "  ingot import model.onnx --size batch=1 --size sequence=128"
        })
final class Import implements java.util.concurrent.Callable<Integer> {
    private static final int WIDTH = 10;

    private final Screen screen;

    @Parameters(index = "0", paramLabel = "PATH", description = "An ONNX file.")
    private String path = "";

    @Option(
            names = "--size",
            paramLabel = "NAME=N",
            description = "A symbolic size, such as batch; NAME.I is axis I of an input whose size has no name.")
    private Map<String, Integer> sizes = Map.of();

    Import(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        return switch (ModelFile.detect(ConfigFile.path(path))) {
            case ModelFile.Onnx file -> onnx(file);
        };
    }

    private int onnx(ModelFile.Onnx file) {
        try (OnnxModel model = OnnxModel.open(file.path())) {
            OnnxReport report = OnnxReport.of(model);
            item("format", "ONNX, IR version " + report.irVersion() + ", " + opsets(report.opsets()));
            item("made by", report.producer().isEmpty() ? "unknown" : report.producer());
            item(
                    "holds",
                    Quantity.count(report.initializers(), "tensor") + ", " + Quantity.bytes(report.initializerBytes()));
            list("inputs", report.inputs());
            list("outputs", report.outputs());
            item("operators", operators(report.operators()));
            if (!report.unsupported().isEmpty()) {
                report.unsupported()
                        .forEach((operator, nodes) ->
                                screen.line("not supported: " + operator + " at " + String.join(", ", nodes)));
                return Main.FAILED;
            }
            if (!sizes.isEmpty()) {
                built(OnnxImport.of(model, OnnxBinding.sizes(sizes)));
            }
            return 0;
        }
    }

    private void built(OnnxImport imported) {
        Graph graph = imported.graph();
        long parameters = 0;
        long bytes = 0;
        for (Type type : imported.types().values()) {
            parameters += type.shape().elements();
            bytes += type.bytes();
        }
        item(
                "graph",
                Quantity.count(graph.values().size(), "op") + ", weights: "
                        + Quantity.count(imported.types().size(), "tensor") + ", "
                        + Quantity.count(parameters, "element")
                        + ", " + Quantity.bytes(bytes));
    }

    private static String opsets(Map<String, Long> opsets) {
        return opsets.entrySet().stream()
                .sorted(Map.Entry.comparingByKey())
                .map(entry -> "opset " + entry.getValue() + (entry.getKey().isEmpty() ? "" : " of " + entry.getKey()))
                .collect(Collectors.joining(", "));
    }

    private static String operators(Map<String, Integer> operators) {
        return operators.entrySet().stream()
                .map(entry -> entry.getValue() + " " + entry.getKey())
                .collect(Collectors.joining(", "));
    }

    private void list(String name, List<String> lines) {
        for (int i = 0; i < lines.size(); i++) {
            item(i == 0 ? name : "", lines.get(i));
        }
    }

    private void item(String name, String text) {
        screen.line(String.format(Locale.ROOT, "%-" + WIDTH + "s %s", name, text));
    }
}
