package ingot.cli;

import ingot.formats.KerasReport;
import ingot.formats.ModelFile;
import ingot.formats.ModelReport;
import ingot.formats.OnnxBinding;
import ingot.formats.OnnxImport;
import ingot.formats.OnnxModel;
import ingot.formats.OnnxReport;
import ingot.formats.PortableModel;
import ingot.formats.SavedModel;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Type;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/// `ingot import`.
@Command(
        name = "import",
        mixinStandardHelpOptions = true,
        showDefaultValues = true,
        header = "Says what a model is, whether it can be used here, and what training it costs.",
        description = {
            "",
            "Of a Hugging Face folder, an ONNX file, or weights alone (safetensors, .pt, .pth,",
            "pytorch_model.bin). Names everything that has no meaning here at once, such as",
            "operators with their nodes; exit status 1 if there is any. The cost is that of a",
            "step with Adam: its memory is planned, its kernels are timed. Reads no weights.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  ingot import models/bert-base --batch 16 --length 256",
            "  ingot import pytorch_model.bin --weights",
            "  ingot import model.onnx --size batch=1 --size sequence=128"
        })
final class Import implements java.util.concurrent.Callable<Integer> {
    private static final int WIDTH = 10;

    private final Screen screen;

    @Parameters(index = "0", paramLabel = "PATH", description = "A file or a folder.")
    private String path = "";

    @Option(names = "--weights", description = "Lists every tensor.")
    private boolean weights;

    @Option(names = "--batch", paramLabel = "N", description = "Rows per step, for the cost.")
    private int batch = 8;

    @Option(names = "--length", paramLabel = "N", description = "Tokens per row, for the cost.")
    private int length = 128;

    @Option(names = "--no-cost", description = "Measures nothing.")
    private boolean costless;

    @Option(
            names = "--size",
            paramLabel = "NAME=N",
            description = "ONNX: a symbolic size, such as batch; NAME.I is axis I of an input whose size has no name.")
    private Map<String, Integer> sizes = new LinkedHashMap<>();

    Import(Screen screen) {
        this.screen = screen;
    }

    @Override
    public Integer call() {
        ModelFile file = ModelFile.detect(ConfigFile.path(path));
        return switch (file) {
            case ModelFile.Onnx onnx -> onnx(onnx);
            case ModelFile.Folder folder -> report(file, ModelReport.folder(folder.path()));
            case ModelFile.Adapter adapter -> report(file, ModelReport.adapter(adapter));
            case ModelFile.Tensors tensors -> report(file, ModelReport.tensors(tensors));
            case ModelFile.Keras keras -> report(file, KerasReport.of(keras.path()));
            case ModelFile.Saved saved -> report(file, SavedModel.report(saved.path()));
            case ModelFile.Pickled pickled -> report(file, ModelReport.pickled(pickled));
        };
    }

    private int report(ModelFile file, ModelReport report) {
        item("format", report.format());
        list("model", report.facts());
        item(
                "holds",
                Quantity.count(report.tensors().size(), "tensor") + ", " + Quantity.count(report.elements(), "element")
                        + ", " + Quantity.bytes(report.bytes()));
        list("weights", tensors(report.tensors()));
        if (!report.unused().isEmpty()) {
            item(
                    "not used",
                    Quantity.count(report.unused().size(), "tensor") + ": " + String.join(", ", report.unused()));
        }
        if (report.problem() != null) {
            screen.line("not usable: " + report.problem());
            return Main.FAILED;
        }
        cost(file);
        return 0;
    }

    private List<String> tensors(SequencedMap<String, Type> all) {
        return weights
                ? all.entrySet().stream()
                        .map(entry -> entry.getKey() + " " + entry.getValue())
                        .toList()
                : ModelReport.summary(all);
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
            if (weights) {
                list("weights", tensors(report.tensors()));
            }
            if (!report.unsupported().isEmpty()) {
                report.unsupported()
                        .forEach((operator, nodes) ->
                                screen.line("not supported: " + operator + " at " + String.join(", ", nodes)));
                return Main.FAILED;
            }
            if (!sizes.isEmpty()) {
                built(OnnxImport.of(model, OnnxBinding.sizes(sizes)));
            }
        }
        cost(file);
        return 0;
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

    /// What a step of training takes, where there is something to train.
    private void cost(ModelFile file) {
        if (costless) {
            return;
        }
        try (PortableModel model = PortableModel.open(file.path())) {
            if (!model.hasGraph()) {
                return;
            }
            screen.live("measuring ...");
            Graph loss = model.lossGraph(batch, length, sizes);
            if (loss.weights().isEmpty()) {
                return;
            }
            TrainingCost cost = TrainingCost.measure(loss);
            screen.end(false);
            List<String> lines = cost.lines(new Machine(Path.of("/")).available());
            item(
                    "training",
                    "a step with Adam on "
                            + loss.inputs().stream()
                                    .filter(input -> input.shape().rank() > 0)
                                    .map(input -> ((Op.Input) input.op()).name() + " " + input.type())
                                    .collect(Collectors.joining(", ")));
            list("", lines);
        } catch (IngotException e) {
            screen.end(false);
            item("training", "cannot be costed: " + e.getMessage());
        } finally {
            screen.end(false);
        }
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
