package ingot.formats;

import ingot.formats.OnnxGraph.Dim;
import ingot.formats.OnnxGraph.Kind;
import ingot.formats.OnnxGraph.Port;
import ingot.ir.IngotException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Reads the messages of `onnx.proto`, field by field: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
///
/// Tensor data stay where they are. Unknown fields are skipped, as protobuf demands.
final class OnnxReader {
    /// Graphs inside nodes inside graphs.
    private static final int MAX_DEPTH = 32;

    private int depth;

    /// What a ModelProto says.
    record Contents(
            long irVersion,
            String producer,
            String producerVersion,
            Map<String, Long> opsets,
            OnnxGraph graph,
            List<Function> functions,
            Map<String, String> metadata) {
        static final Contents NONE = new Contents(
                0,
                "",
                "",
                Map.of(),
                new OnnxGraph("", List.of(), List.of(), List.of(), List.of(), List.of()),
                List.of(),
                Map.of());
    }

    /// An operator that the file itself defines.
    record Function(
            String domain,
            String name,
            List<String> inputs,
            List<String> outputs,
            Map<String, OnnxAttribute> defaults,
            List<OnnxNode> nodes,
            Map<String, Long> opsets) {
        Function {
            domain = domain.equals("ai.onnx") ? "" : domain;
        }
    }

    Contents model(MemorySegment file) {
        OnnxWire wire = new OnnxWire(file);
        long irVersion = 0;
        String producer = "";
        String producerVersion = "";
        Map<String, Long> opsets = new LinkedHashMap<>();
        OnnxGraph graph = null;
        List<Function> functions = new ArrayList<>();
        Map<String, String> metadata = new LinkedHashMap<>();
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> irVersion = wire.integer();
                case 2 -> producer = wire.text();
                case 3 -> producerVersion = wire.text();
                case 7 -> graph = graph(wire.message());
                case 8 -> opset(wire.message(), opsets);
                case 14 -> entry(wire.message(), metadata);
                case 25 -> functions.add(function(wire.message()));
                default -> wire.skip();
            }
        }
        if (graph == null) {
            throw new IngotException("onnx: the file holds no graph; it is damaged or no ONNX model");
        }
        return new Contents(irVersion, producer, producerVersion, opsets, graph, functions, metadata);
    }

    private static void opset(OnnxWire wire, Map<String, Long> opsets) {
        String domain = "";
        long version = 0;
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> domain = wire.text();
                case 2 -> version = wire.integer();
                default -> wire.skip();
            }
        }
        opsets.put(domain.equals("ai.onnx") ? "" : domain, version);
    }

    private static void entry(OnnxWire wire, Map<String, String> entries) {
        String key = "";
        String value = "";
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> key = wire.text();
                case 2 -> value = wire.text();
                default -> wire.skip();
            }
        }
        entries.put(key, value);
    }

    private Function function(OnnxWire wire) {
        String domain = "";
        String name = "";
        List<String> inputs = new ArrayList<>();
        List<String> outputs = new ArrayList<>();
        Map<String, OnnxAttribute> defaults = new LinkedHashMap<>();
        List<OnnxNode> nodes = new ArrayList<>();
        Map<String, Long> opsets = new LinkedHashMap<>();
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> name = wire.text();
                case 4 -> inputs.add(wire.text());
                case 5 -> outputs.add(wire.text());
                case 7 -> nodes.add(node(wire.message()));
                case 9 -> opset(wire.message(), opsets);
                case 10 -> domain = wire.text();
                case 11 -> attribute(wire.message(), defaults);
                default -> wire.skip();
            }
        }
        return new Function(domain, name, inputs, outputs, defaults, nodes, opsets);
    }

    private OnnxGraph graph(OnnxWire wire) {
        if (++depth > MAX_DEPTH) {
            throw new IngotException("onnx: graphs are nested deeper than " + MAX_DEPTH);
        }
        String name = "";
        List<OnnxNode> nodes = new ArrayList<>();
        List<OnnxTensor> initializers = new ArrayList<>();
        List<Port> inputs = new ArrayList<>();
        List<Port> outputs = new ArrayList<>();
        List<Port> values = new ArrayList<>();
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> nodes.add(node(wire.message()));
                case 2 -> name = wire.text();
                case 5 -> initializers.add(tensor(wire.message()));
                case 11 -> inputs.add(port(wire.message()));
                case 12 -> outputs.add(port(wire.message()));
                case 13 -> values.add(port(wire.message()));
                case 15 ->
                    throw new IngotException("onnx: graph " + name + " has a sparse initializer, which is not"
                            + " supported; store it as a dense tensor");
                default -> wire.skip();
            }
        }
        depth--;
        return new OnnxGraph(name, nodes, initializers, inputs, outputs, values);
    }

    private OnnxNode node(OnnxWire wire) {
        String name = "";
        String domain = "";
        String operator = "";
        List<String> inputs = new ArrayList<>();
        List<String> outputs = new ArrayList<>();
        Map<String, OnnxAttribute> attributes = new LinkedHashMap<>();
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> inputs.add(wire.text());
                case 2 -> outputs.add(wire.text());
                case 3 -> name = wire.text();
                case 4 -> operator = wire.text();
                case 5 -> attribute(wire.message(), attributes);
                case 7 -> domain = wire.text();
                default -> wire.skip();
            }
        }
        return new OnnxNode(name, domain, operator, inputs, outputs, attributes);
    }

    private void attribute(OnnxWire wire, Map<String, OnnxAttribute> into) {
        String name = "";
        String reference = "";
        long type = 0;
        OnnxAttribute single = null;
        List<Float> floats = new ArrayList<>();
        List<Long> ints = new ArrayList<>();
        List<String> strings = new ArrayList<>();
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> name = wire.text();
                case 2 -> single = new OnnxAttribute.OfFloat(wire.floating());
                case 3 -> single = new OnnxAttribute.OfInt(wire.integer());
                case 4 -> single = new OnnxAttribute.OfString(wire.text());
                case 5 -> single = new OnnxAttribute.OfTensor(tensor(wire.message()));
                case 6 -> single = new OnnxAttribute.OfGraph(graph(wire.message()));
                case 7 -> floats(wire, floats);
                case 8 -> integers(wire, ints);
                case 9 -> strings.add(wire.text());
                case 10 -> single = other(wire, "tensors");
                case 11 -> single = other(wire, "graphs");
                case 14, 15 -> single = other(wire, "type");
                case 20 -> type = wire.integer();
                case 21 -> reference = wire.text();
                case 22, 23 -> single = other(wire, "sparse tensor");
                default -> wire.skip();
            }
        }
        into.put(name, attribute(reference, type, single, floats, ints, strings));
    }

    private static OnnxAttribute other(OnnxWire wire, String kind) {
        wire.skip();
        return new OnnxAttribute.Other(kind);
    }

    /// `type` decides where the file gives it; proto3 writers leave out zeros, so its value may be all there is.
    private static OnnxAttribute attribute(
            String reference,
            long type,
            @Nullable OnnxAttribute single,
            List<Float> floats,
            List<Long> ints,
            List<String> strings) {
        if (!reference.isEmpty()) {
            return new OnnxAttribute.Reference(reference);
        }
        if (type == 6 || (type == 0 && !floats.isEmpty())) {
            return new OnnxAttribute.OfFloats(floats);
        }
        if (type == 7 || (type == 0 && !ints.isEmpty())) {
            return new OnnxAttribute.OfInts(ints);
        }
        if (type == 8 || (type == 0 && !strings.isEmpty())) {
            return new OnnxAttribute.OfStrings(strings);
        }
        if (single != null) {
            return single;
        }
        return switch ((int) type) {
            case 1 -> new OnnxAttribute.OfFloat(0);
            case 2 -> new OnnxAttribute.OfInt(0);
            case 3 -> new OnnxAttribute.OfString("");
            default -> new OnnxAttribute.Other("type " + type);
        };
    }

    private static void floats(OnnxWire wire, List<Float> into) {
        if (wire.isBytes()) {
            MemorySegment packed = wire.bytes();
            for (long i = 0; i < packed.byteSize() / 4; i++) {
                into.add(Float.intBitsToFloat(OnnxWire.intAt(packed, i)));
            }
        } else {
            into.add(wire.floating());
        }
    }

    private static void integers(OnnxWire wire, List<Long> into) {
        if (wire.isBytes()) {
            for (OnnxWire packed = wire.message(); !packed.ended(); ) {
                into.add(packed.packedVarint());
            }
        } else {
            into.add(wire.integer());
        }
    }

    /// A TensorProto.
    static OnnxTensor tensor(OnnxWire wire) {
        List<Long> dims = new ArrayList<>();
        long type = 0;
        String name = "";
        MemorySegment raw = null;
        List<MemorySegment> runs = new ArrayList<>();
        int width = 0;
        List<String> strings = new ArrayList<>();
        Map<String, String> external = new LinkedHashMap<>();
        boolean outside = false;
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> integers(wire, dims);
                case 2 -> type = wire.integer();
                case 4 -> {
                    width = 4;
                    runs.add(wire.isBytes() ? wire.bytes() : wire.number());
                }
                case 5, 7, 11 -> runs.add(wire.isBytes() ? wire.bytes() : wire.number());
                case 6 -> strings.add(wire.text());
                case 8 -> name = wire.text();
                case 9 -> raw = wire.bytes();
                case 10 -> {
                    width = 8;
                    runs.add(wire.isBytes() ? wire.bytes() : wire.number());
                }
                case 13 -> entry(wire.message(), external);
                case 14 -> outside = wire.integer() == 1;
                default -> wire.skip();
            }
        }
        OnnxType known = OnnxType.of(type, "tensor " + name);
        OnnxTensor.Data data;
        if (outside) {
            data = external(name, external);
        } else if (raw != null) {
            data = new OnnxTensor.Data.Raw(raw);
        } else if (known == OnnxType.STRING) {
            data = new OnnxTensor.Data.Strings(strings);
        } else {
            data = new OnnxTensor.Data.Numbers(runs, width);
        }
        return new OnnxTensor(name, known, dims, data);
    }

    private static OnnxTensor.Data external(String name, Map<String, String> entries) {
        String location = entries.getOrDefault("location", "");
        long offset = count(name, "offset", entries.getOrDefault("offset", "0"));
        long length = count(name, "length", entries.getOrDefault("length", "-1"));
        if (location.isEmpty()) {
            throw new IngotException(
                    "onnx: tensor " + name + " lies outside of the model, but the file does not say" + " where");
        }
        return new OnnxTensor.Data.External(location, offset, length);
    }

    private static long count(String tensor, String what, String text) {
        try {
            long value = Long.parseLong(text);
            if (value >= 0 || (what.equals("length") && value == -1)) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw new IngotException("onnx: tensor " + tensor + " has the " + what + " '" + text + "'", e);
        }
        throw new IngotException("onnx: tensor " + tensor + " has the " + what + " " + text);
    }

    /// A ValueInfoProto.
    private static Port port(OnnxWire wire) {
        String name = "";
        Port typed = new Port("", Kind.UNKNOWN, null, null);
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> name = wire.text();
                case 2 -> typed = type(wire.message());
                default -> wire.skip();
            }
        }
        return new Port(name, typed.kind(), typed.type(), typed.dims());
    }

    private static Port type(OnnxWire wire) {
        Port found = new Port("", Kind.UNKNOWN, null, null);
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> found = tensorType(wire.message());
                case 4 -> found = sequenceType(wire.message());
                case 5 -> found = of(wire, Kind.MAP);
                case 8 -> found = of(wire, Kind.SPARSE);
                case 9 -> found = of(wire, Kind.OPTIONAL);
                default -> wire.skip();
            }
        }
        return found;
    }

    /// A sequence has the type of its elements.
    private static Port sequenceType(OnnxWire wire) {
        Port found = new Port("", Kind.SEQUENCE, null, null);
        while (wire.next()) {
            if (wire.field() == 1) {
                Port element = elementType(wire.message());
                found = new Port(
                        "", element.kind() == Kind.TENSOR ? Kind.SEQUENCE : Kind.UNKNOWN, element.type(), null);
            } else {
                wire.skip();
            }
        }
        return found;
    }

    /// Of a sequence: only tensors are looked into, so that nested types need no stack.
    private static Port elementType(OnnxWire wire) {
        Port found = new Port("", Kind.UNKNOWN, null, null);
        while (wire.next()) {
            if (wire.field() == 1) {
                found = tensorType(wire.message());
            } else {
                wire.skip();
            }
        }
        return found;
    }

    private static Port of(OnnxWire wire, Kind kind) {
        wire.skip();
        return new Port("", kind, null, null);
    }

    private static Port tensorType(OnnxWire wire) {
        OnnxType type = null;
        List<Dim> dims = null;
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> type = OnnxType.find(wire.integer());
                case 2 -> dims = dims(wire.message());
                default -> wire.skip();
            }
        }
        return new Port("", Kind.TENSOR, type, dims);
    }

    private static List<Dim> dims(OnnxWire wire) {
        List<Dim> dims = new ArrayList<>();
        while (wire.next()) {
            if (wire.field() == 1) {
                dims.add(dim(wire.message()));
            } else {
                wire.skip();
            }
        }
        return dims;
    }

    private static Dim dim(OnnxWire wire) {
        long size = -1;
        String symbol = "";
        while (wire.next()) {
            switch (wire.field()) {
                case 1 -> size = wire.integer();
                case 2 -> symbol = wire.text();
                default -> wire.skip();
            }
        }
        return new Dim(Math.max(size, -1), symbol);
    }
}
