package ingot.formats;

import ingot.ir.IngotException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.TreeMap;

/// A SavedModel of TensorFlow: told what it holds, not imported.
///
/// Field numbers: saved_model.proto, meta_graph.proto, graph.proto, function.proto, tensor_shape.proto of TensorFlow.
public final class SavedModel {
    static final String FILE = "saved_model.pb";

    private static final String ADVICE =
            "a TensorFlow SavedModel: its operations are TensorFlow's own and are not imported. Convert it where"
                    + " TensorFlow is installed: python -m tf2onnx.convert --saved-model FOLDER --output model.onnx; a"
                    + " model of Keras can be saved by model.save('model.keras')";

    private final List<String> signatures = new ArrayList<>();
    private final TreeMap<String, Integer> operations = new TreeMap<>();
    private String version = "";

    private SavedModel() {}

    public static boolean isAt(Path folder) {
        return Files.isRegularFile(folder.resolve(FILE));
    }

    /// Signatures with inputs and outputs, and how often each operation is used; the problem says how to convert it.
    public static ModelReport report(Path folder) {
        Path file = folder.resolve(FILE);
        SavedModel model = new SavedModel();
        try (Arena arena = Arena.ofConfined();
                FileChannel channel = FileChannel.open(file)) {
            OnnxWire wire = new OnnxWire(channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena));
            while (wire.next()) {
                if (wire.field() == 2 && wire.isBytes()) {
                    model.metaGraph(wire.message());
                } else {
                    wire.skip();
                }
            }
        } catch (IOException e) {
            throw new IngotException(file + ": cannot be read: " + e.getMessage(), e);
        } catch (IngotException e) {
            throw new IngotException(
                    file + ": "
                            + String.valueOf(e.getMessage())
                                    .replace("onnx: ", "")
                                    .replace("no ONNX model", "no SavedModel"),
                    e);
        }
        List<String> facts = new ArrayList<>(model.signatures);
        List<String> counts = new ArrayList<>();
        model.operations.forEach((name, count) -> counts.add(name + " × " + count));
        facts.add("operations " + (counts.isEmpty() ? "none" : Listing.of(counts)));
        return new ModelReport(
                "TensorFlow SavedModel" + (model.version.isEmpty() ? "" : ", TensorFlow " + model.version),
                facts,
                new LinkedHashMap<>(),
                List.of(),
                ADVICE);
    }

    private void metaGraph(OnnxWire wire) {
        while (wire.next()) {
            switch (wire.isBytes() ? wire.field() : 0) {
                case 1 -> metaInfo(wire.message());
                case 2 -> graph(wire.message());
                case 5 -> signature(wire.message());
                default -> wire.skip();
            }
        }
    }

    private void metaInfo(OnnxWire wire) {
        while (wire.next()) {
            if (wire.field() == 5 && wire.isBytes()) {
                version = wire.text();
            } else {
                wire.skip();
            }
        }
    }

    /// Nodes, and the library of functions with theirs.
    private void graph(OnnxWire wire) {
        while (wire.next()) {
            switch (wire.isBytes() ? wire.field() : 0) {
                case 1 -> node(wire.message());
                case 2 -> library(wire.message());
                default -> wire.skip();
            }
        }
    }

    private void library(OnnxWire wire) {
        while (wire.next()) {
            if (wire.field() != 1 || !wire.isBytes()) {
                wire.skip();
                continue;
            }
            OnnxWire function = wire.message();
            while (function.next()) {
                if (function.field() == 3 && function.isBytes()) {
                    node(function.message());
                } else {
                    function.skip();
                }
            }
        }
    }

    private void node(OnnxWire wire) {
        while (wire.next()) {
            if (wire.field() == 2 && wire.isBytes()) {
                operations.merge(wire.text(), 1, Integer::sum);
            } else {
                wire.skip();
            }
        }
    }

    /// A map entry: name, and the inputs (1) and outputs (2) as maps.
    private void signature(OnnxWire entry) {
        String name = "";
        List<String> inputs = new ArrayList<>();
        List<String> outputs = new ArrayList<>();
        while (entry.next()) {
            if (entry.field() == 1 && entry.isBytes()) {
                name = entry.text();
            } else if (entry.field() == 2 && entry.isBytes()) {
                OnnxWire definition = entry.message();
                while (definition.next()) {
                    switch (definition.isBytes() ? definition.field() : 0) {
                        case 1 -> inputs.add(tensor(definition.message()));
                        case 2 -> outputs.add(tensor(definition.message()));
                        default -> definition.skip();
                    }
                }
            } else {
                entry.skip();
            }
        }
        if (!name.startsWith("__")) { // those of the saver
            signatures.add("signature " + name + ": " + String.join(", ", inputs) + " → " + String.join(", ", outputs));
        }
    }

    private static String tensor(OnnxWire entry) {
        String name = "";
        String type = "";
        while (entry.next()) {
            if (entry.field() == 1 && entry.isBytes()) {
                name = entry.text();
            } else if (entry.field() == 2 && entry.isBytes()) {
                type = type(entry.message());
            } else {
                entry.skip();
            }
        }
        return name + " : " + type;
    }

    private static String type(OnnxWire info) {
        String dtype = "?";
        String shape = "[…]";
        while (info.next()) {
            if (info.field() == 2 && !info.isBytes()) {
                dtype = dtype(info.integer());
            } else if (info.field() == 3 && info.isBytes()) {
                shape = shape(info.message());
            } else {
                info.skip();
            }
        }
        return dtype + shape;
    }

    private static String dtype(long number) {
        List<String> names = List.of("?", "f32", "f64", "i32", "u8", "i16", "i8", "string", "c64", "i64", "bool");
        return number > 0 && number < names.size() ? names.get((int) number) : "type " + number;
    }

    private static String shape(OnnxWire wire) {
        List<String> dims = new ArrayList<>();
        while (wire.next()) {
            if (wire.field() == 2 && wire.isBytes()) {
                OnnxWire dim = wire.message();
                long size = 0;
                while (dim.next()) {
                    if (dim.field() == 1 && !dim.isBytes()) {
                        size = dim.integer();
                    } else {
                        dim.skip();
                    }
                }
                dims.add(size < 0 ? "?" : String.valueOf(size));
            } else {
                wire.skip();
            }
        }
        return "[" + String.join(", ", dims) + "]";
    }
}
