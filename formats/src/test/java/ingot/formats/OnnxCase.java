package ingot.formats;

import ingot.formats.OnnxGraph.Kind;
import ingot.formats.OnnxGraph.Port;
import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/// One case of the ONNX backend tests: a model, its inputs, and what must come out.
record OnnxCase(String folder, Path path) {
    /// The tolerances of the ONNX test runner.
    private static final double RELATIVE = 1e-3;

    private static final double ABSOLUTE = 1e-7;

    String name() {
        return path.getFileName().toString();
    }

    /// The operator that it is about: that of its only node, or of the model that it is an expansion of.
    String operator() {
        Path plain = path.resolveSibling(name().replace("_expanded", ""));
        Path model = (Files.isDirectory(plain) ? plain : path).resolve("model.onnx");
        try (OnnxModel opened = OnnxModel.open(model)) {
            return opened.graph().nodes().stream()
                    .map(OnnxNode::qualified)
                    .filter(op -> !op.equals("Constant"))
                    .reduce((a, b) -> b)
                    .orElse("Constant");
        } catch (IngotException e) {
            return "unreadable";
        }
    }

    /// A graph that passed, with what it was given.
    record Passed(Graph graph, Map<String, Tensor> inputs, Map<String, Tensor> weights, Map<String, Tensor> outputs) {}

    /// What kept a case from passing.
    static final class Failed extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Failed(String reason) {
            super(reason);
        }
    }

    Passed run() {
        try (OnnxModel model = OnnxModel.open(path.resolve("model.onnx"))) {
            Map<String, Tensor> given = given(model.graph().freeInputs(), "input_");
            OnnxBinding binding = OnnxBinding.NONE;
            for (Map.Entry<String, Tensor> entry : given.entrySet()) {
                binding = binding.shape(entry.getKey(), entry.getValue().shape());
            }
            OnnxImport imported = imported(model, binding, given);
            Map<String, Tensor> inputs = new HashMap<>(given);
            Map<String, Tensor> weights = OnnxRun.weights(imported);
            if (imported.graph().inputs().stream()
                    .anyMatch(v -> v.op().toString().contains("name=key,"))) {
                inputs.put("key", Tensor.of(ingot.ir.Shape.of(4), 1, 2, 3, 4));
            }
            Map<String, Tensor> found = Interpreter.run(imported.graph(), inputs, weights);
            Map<String, Tensor> expected = given(model.graph().outputs(), "output_");
            expected.forEach((name, tensor) -> compare(name, found.get(name), tensor));
            return new Passed(imported.graph(), inputs, weights, found);
        }
    }

    /// Imports; inputs that a shape depends on become constants.
    private static OnnxImport imported(OnnxModel model, OnnxBinding start, Map<String, Tensor> given) {
        OnnxBinding binding = start;
        for (int tries = 0; ; tries++) {
            try {
                return OnnxImport.of(model, binding);
            } catch (OnnxDataDependentException e) {
                if (e.inputs().isEmpty() || tries > 8) {
                    throw e;
                }
                for (String input : e.inputs()) {
                    binding = binding.constant(input, given.get(input));
                }
            }
        }
    }

    private Map<String, Tensor> given(List<Port> ports, String prefix) {
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        List<Port> wanted = new ArrayList<>(ports);
        for (int i = 0; i < wanted.size(); i++) {
            Path file = path.resolve("test_data_set_0").resolve(prefix + i + ".pb");
            Port port = wanted.get(i);
            if (port.kind() == Kind.SEQUENCE && Files.exists(file)) {
                List<Tensor> elements = sequence(new OnnxWire(bytes(file)));
                for (int k = 0; k < elements.size(); k++) {
                    tensors.put(port.name() + "." + k, elements.get(k));
                }
            } else if (port.kind() != Kind.TENSOR) {
                throw new Failed("Optional values are not supported.");
            } else if (Files.exists(file)) {
                tensors.put(port.name(), tensor(OnnxReader.tensor(new OnnxWire(bytes(file))), port));
            }
        }
        return tensors;
    }

    /// The test data hold BFLOAT16 as UINT16.
    private static Tensor tensor(OnnxTensor tensor, Port port) {
        if (tensor.type() == OnnxType.STRING) {
            throw new Failed("Strings are not supported.");
        }
        OnnxTensor typed = port.type() == OnnxType.BFLOAT16 && tensor.type() == OnnxType.UINT16
                ? new OnnxTensor(tensor.name(), OnnxType.BFLOAT16, tensor.dims(), tensor.data())
                : tensor;
        return typed.read(OnnxTensor.Neighbours.none());
    }

    /// The tensors of a SequenceProto.
    private static List<Tensor> sequence(OnnxWire wire) {
        List<Tensor> tensors = new ArrayList<>();
        while (wire.next()) {
            if (wire.field() == 3) {
                tensors.add(OnnxReader.tensor(wire.message()).read(OnnxTensor.Neighbours.none()));
            } else {
                wire.skip();
            }
        }
        return tensors;
    }

    private static MemorySegment bytes(Path file) {
        try {
            return MemorySegment.ofArray(Files.readAllBytes(file));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void compare(String name, Tensor found, Tensor expected) {
        if (found == null) {
            throw new Failed("output " + name + " is missing");
        }
        if (!found.type().equals(expected.type())) {
            throw new Failed("output " + name + " is " + found.type() + ", expected " + expected.type());
        }
        boolean floating = found.type().dtype().isFloating();
        for (long i = 0; i < expected.shape().elements(); i++) {
            double a = floating ? found.getFloat(i) : found.getLong(i);
            double b = floating ? expected.getFloat(i) : expected.getLong(i);
            boolean equal = a == b || (Double.isNaN(a) && Double.isNaN(b));
            if (!equal && !(Math.abs(a - b) <= ABSOLUTE + RELATIVE * Math.abs(b))) {
                throw new Failed("output " + name + " has " + a + " at " + i + ", expected " + b);
            }
        }
    }

    static List<OnnxCase> all(Path data) {
        List<OnnxCase> cases = new ArrayList<>();
        for (String folder : List.of("node", "simple", "pytorch-converted", "pytorch-operator")) {
            try (var paths = Files.list(data.resolve(folder))) {
                for (Path path : new TreeSet<>(paths.toList())) {
                    if (Files.exists(path.resolve("model.onnx"))) {
                        cases.add(new OnnxCase(folder, path));
                    }
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return cases;
    }
}
