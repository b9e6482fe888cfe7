package ingot.formats;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Type;
import ingot.ir.Value;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// Writes a graph and its weights as an ONNX file, under the names of the graph.
///
/// Weights of more than `MAX_INSIDE` bytes together go to a file beside it, since no message of protobuf may have 2
/// GiB.
public final class OnnxWriter {
    private static final long MAX_INSIDE = 1_500_000_000L;
    private static final int CHUNK = 1 << 24;
    private static final int IR_VERSION = 10;
    /// A prime may divide a size of the model by chance, or be more than the model takes; then smaller ones are tried.
    private static final List<Integer> PRIMES = List.of(251, 19);

    private OnnxWriter() {}

    /// What became of the sizes of a graph.
    ///
    /// @param open those that the file leaves open, under their names
    /// @param fixed those that the graph depends on in ways that no size of ONNX can say
    public record Written(List<String> open, SequencedMap<String, Integer> fixed) {
        public Written {
            open = List.copyOf(open);
        }
    }

    /// The file appears whole or not at all.
    public static void write(Path path, Graph graph, WeightSource weights) {
        write(path, graph, OnnxExport.nodes(graph, OnnxSymbols.NONE), weights);
    }

    /// The same with as many open sizes as can be: all of them, else without the later ones, which become
    /// `otherwise`, or the largest possible if that is less.
    public static Written write(Path path, SizedGraph graph, int otherwise, WeightSource weights) {
        SequencedMap<String, Integer> fixed = new LinkedHashMap<>();
        List<String> open = new ArrayList<>(graph.most().keySet());
        while (!open.isEmpty()) {
            SizedGraph rest = graph.with(fixed);
            for (int largest : PRIMES) {
                OnnxSymbols primes = symbols(rest, largest, 0);
                OnnxSymbols others = symbols(rest, largest, open.size());
                if (others.primes().containsValue(0)) {
                    break; // not enough primes among the possible sizes
                }
                Trial trial = Trial.of(rest, primes);
                Trial other = trial == null ? null : Trial.of(rest, others);
                if (trial != null && other != null && trial.isLike(other)) {
                    write(path, trial.graph(), trial.nodes(), weights);
                    return new Written(open, fixed);
                }
            }
            String last = open.removeLast();
            fixed.putFirst(last, Math.min(otherwise, graph.most().getOrDefault(last, otherwise)));
        }
        write(path, graph.of(fixed), weights);
        return new Written(open, fixed);
    }

    /// A graph written with primes for its sizes.
    private record Trial(Graph graph, OnnxFields nodes) {
        /// Null if the graph has none of these sizes, or cannot be written; the error comes with sizes that it has.
        static @Nullable Trial of(SizedGraph graph, OnnxSymbols symbols) {
            try {
                Graph made = graph.of(symbols.primes());
                return new Trial(made, OnnxExport.nodes(made, symbols));
            } catch (IngotException e) {
                return null;
            }
        }

        boolean isLike(Trial other) {
            return Arrays.equals(nodes.toBytes(), other.nodes.toBytes());
        }
    }

    /// For each size a prime of its own, at most `largest` and so many places before it.
    private static OnnxSymbols symbols(SizedGraph graph, int largest, int before) {
        SequencedMap<String, Integer> primes = new LinkedHashMap<>();
        for (Map.Entry<String, Integer> size : graph.most().entrySet()) {
            primes.put(size.getKey(), OnnxSymbols.prime(Math.min(size.getValue(), largest), before + primes.size()));
        }
        return new OnnxSymbols(primes);
    }

    private static void write(Path path, Graph graph, OnnxFields nodes, WeightSource weights) {
        List<Op.Weight> stored = new ArrayList<>();
        long bytes = 0;
        for (Value weight : graph.weights()) {
            stored.add((Op.Weight) weight.op());
            bytes += weight.type().bytes();
        }
        Path data = bytes > MAX_INSIDE ? path.resolveSibling(path.getFileName() + ".data") : path;
        Path partial = path.resolveSibling(path.getFileName() + ".partial");
        try {
            try (FileChannel out = create(partial)) {
                if (data.equals(path)) {
                    inside(out, nodes, stored, weights);
                } else {
                    outside(out, data, nodes, stored, weights);
                }
                out.force(true);
            }
            Files.move(partial, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            throw new IngotException("onnx: cannot write " + path + ": " + e.getMessage(), e);
        }
    }

    private static FileChannel create(Path path) throws IOException {
        return FileChannel.open(
                path, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING);
    }

    private static void inside(FileChannel out, OnnxFields nodes, List<Op.Weight> stored, WeightSource weights)
            throws IOException {
        List<OnnxFields> heads = new ArrayList<>();
        long size = nodes.size();
        for (Op.Weight weight : stored) {
            OnnxFields tensor = tensor(weight);
            tensor.length(9, weight.type().bytes());
            OnnxFields head =
                    new OnnxFields().length(5, tensor.size() + weight.type().bytes());
            heads.add(head);
            heads.add(tensor);
            size += head.size() + tensor.size() + weight.type().bytes();
        }
        begin(out, size, nodes);
        for (int i = 0; i < stored.size(); i++) {
            put(out, heads.get(2 * i).toBytes());
            put(out, heads.get(2 * i + 1).toBytes());
            copy(out, stored.get(i), weights);
        }
    }

    private static void outside(
            FileChannel out, Path data, OnnxFields nodes, List<Op.Weight> stored, WeightSource weights)
            throws IOException {
        try (FileChannel beside = create(data)) {
            for (Op.Weight weight : stored) {
                OnnxFields tensor = tensor(weight)
                        .message(13, entry("location", data.getFileName().toString()))
                        .message(13, entry("offset", Long.toString(beside.position())))
                        .message(13, entry("length", Long.toString(weight.type().bytes())))
                        .integer(14, 1);
                nodes.message(5, tensor);
                copy(beside, weight, weights);
            }
            beside.force(true);
        }
        begin(out, nodes.size(), nodes);
    }

    private static OnnxFields entry(String key, String value) {
        return new OnnxFields().text(1, key).text(2, value);
    }

    /// Everything of a model but the weights, which end the graph.
    private static void begin(FileChannel out, long graphBytes, OnnxFields nodes) throws IOException {
        OnnxFields model = new OnnxFields().integer(1, IR_VERSION).text(2, "ingot");
        model.message(8, new OnnxFields().text(1, "").integer(2, OnnxExport.OPSET));
        model.message(8, new OnnxFields().text(1, OnnxExport.DOMAIN).integer(2, 1));
        OnnxExport.functions().forEach(function -> model.message(25, function));
        put(out, model.length(7, graphBytes).toBytes());
        put(out, nodes.toBytes());
    }

    private static OnnxFields tensor(Op.Weight weight) {
        OnnxFields tensor = new OnnxFields();
        for (int dim : weight.type().shape().dims()) {
            tensor.integer(1, dim);
        }
        return tensor.integer(2, OnnxType.of(weight.type().dtype()).id()).text(8, weight.name());
    }

    private static void copy(FileChannel out, Op.Weight weight, WeightSource weights) throws IOException {
        Type type = weight.type();
        Type found = weights.types().get(weight.name());
        if (!type.equals(found)) {
            throw new IngotException(
                    "onnx: the graph has the weight " + weight.name() + " : " + type + ", the source has " + found);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment data = arena.allocate(Math.max(1, type.bytes())).asSlice(0, type.bytes());
            weights.read(weight.name(), data);
            for (long at = 0; at < data.byteSize(); at += CHUNK) {
                write(
                        out,
                        data.asSlice(at, Math.min(CHUNK, data.byteSize() - at)).asByteBuffer());
            }
        }
    }

    private static void put(FileChannel out, byte[] bytes) throws IOException {
        write(out, ByteBuffer.wrap(bytes));
    }

    private static void write(FileChannel out, ByteBuffer buffer) throws IOException {
        while (buffer.hasRemaining()) {
            out.write(buffer);
        }
    }
}
