package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ingot.autodiff.Gradients;
import ingot.cpu.TilePool;
import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// Every kind of layer against what TensorFlow.js computes (`scripts/keras-reference.mjs`), in its own files and in
/// those of Keras (`scripts/keras-files.py`).
class KerasTest {
    /// Both compute in float32, in another order.
    private static final float TOLERANCE = 2e-6f;

    @TempDir
    Path folder;

    private static JsonNode cases() {
        try (InputStream in = Objects.requireNonNull(KerasTest.class.getResourceAsStream("keras-cases.json"))) {
            return JsonMapper.shared().readTree(in);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    @TestFactory
    Stream<DynamicTest> tensorFlowJs() {
        JsonNode cases = cases();
        return cases.propertyNames().stream()
                .map(name -> DynamicTest.dynamicTest(
                        name, () -> compare(write(cases.path(name), folder.resolve(name)), cases.path(name))));
    }

    /// The same models in the layouts of Keras 2 and 3, written by another program.
    @ParameterizedTest
    @ValueSource(
            strings = {
                "sequential.h5",
                "nested.h5",
                "bidirectional.h5",
                "sequential.keras",
                "nested.keras",
                "bidirectional.keras"
            })
    void kerasFiles(String name) throws IOException {
        compare(resource(name), cases().path(name.substring(0, name.indexOf('.'))));
    }

    private Path resource(String name) throws IOException {
        Path file = folder.resolve(name);
        try (InputStream in = Objects.requireNonNull(KerasTest.class.getResourceAsStream("keras-" + name), name)) {
            Files.write(file, in.readAllBytes());
        }
        return file;
    }

    private static void compare(Path path, JsonNode expected) {
        try (KerasImport imported = KerasImport.open(path, 2)) {
            Map<String, Tensor> inputs = inputs(imported.graph(), expected);
            Map<String, Tensor> weights = OnnxRun.weights(imported);
            Map<String, Tensor> found = Interpreter.run(imported.graph(), inputs, weights);
            assertThat(found).hasSameSizeAs(expected.path("outputs"));
            int i = 0;
            for (Map.Entry<String, Tensor> output : found.entrySet()) {
                JsonNode wanted = expected.path("outputs").path(i++);
                assertThat(output.getValue().shape()).isEqualTo(shape(wanted));
                close(output.getValue().toFloats(), floats(wanted), output.getKey());
            }
        }
    }

    private static void close(float[] found, float[] wanted, String what) {
        float largest = 1;
        for (float value : wanted) {
            largest = Math.max(largest, Math.abs(value));
        }
        assertThat(found).as(what).hasSameSizeAs(wanted);
        for (int i = 0; i < found.length; i++) {
            assertThat(Math.abs(found[i] - wanted[i])).as(what + " " + i).isLessThanOrEqualTo(TOLERANCE * largest);
        }
    }

    private static Map<String, Tensor> inputs(Graph graph, JsonNode expected) {
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        int i = 0;
        for (Value input : graph.inputs()) {
            JsonNode given = expected.path("inputs").path(i++);
            float[] values = floats(given);
            int[] ids = new int[values.length];
            for (int k = 0; k < ids.length; k++) {
                ids[k] = (int) values[k];
            }
            inputs.put(
                    ((Op.Input) input.op()).name(),
                    input.dtype() == DType.I32 ? Tensor.of(shape(given), ids) : Tensor.of(shape(given), values));
        }
        return inputs;
    }

    private static Shape shape(JsonNode node) {
        List<Integer> dims = new ArrayList<>();
        node.path("shape").forEach(each -> dims.add(each.asInt()));
        return Shape.of(dims);
    }

    private static float[] floats(JsonNode node) {
        byte[] bytes = Base64.getDecoder().decode(node.path("values").asString());
        float[] values = new float[bytes.length / 4];
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(values);
        return values;
    }

    /// A case as a layers model: its bytes in two shards that cut a weight.
    private static Path write(JsonNode each, Path folder) throws IOException {
        Files.createDirectories(folder);
        byte[] data = Base64.getDecoder().decode(each.path("data").asString());
        int cut = data.length / 2;
        Files.write(folder.resolve("group1-shard1of2.bin"), java.util.Arrays.copyOfRange(data, 0, cut));
        Files.write(folder.resolve("group1-shard2of2.bin"), java.util.Arrays.copyOfRange(data, cut, data.length));
        Path file = folder.resolve("model.json");
        Files.writeString(file, manifest(each).toString());
        return file;
    }

    private static ObjectNode manifest(JsonNode each) {
        ObjectNode root = JsonMapper.shared().createObjectNode();
        root.put("format", "layers-model");
        root.set("modelTopology", each.path("topology"));
        ObjectNode group = root.putArray("weightsManifest").addObject();
        group.putArray("paths").add("group1-shard1of2.bin").add("group1-shard2of2.bin");
        group.set("weights", each.path("weights"));
        return root;
    }

    /// By hand: the centres of the two finer pixels lie a quarter to each side. TensorFlow.js does not align centres,
    /// so it is no reference here.
    @Test
    void bilinearUpSampling() throws IOException {
        JsonNode each = cases().path("upsampling"); // [2, 2, 3, 2], rows twice, columns three times
        Path file = write(each, folder);
        String text = Files.readString(file);
        Files.writeString(file, text.replace("\"nearest\"", "\"bilinear\""));
        float[] x = floats(each.path("inputs").path(0));
        double[][] rows = {{1, 0}, {0.75, 0.25}, {0.25, 0.75}, {0, 1}};
        double third = 1.0 / 3;
        double[][] columns = {
            {1, 0, 0}, //
            {1, 0, 0},
            {1 - third, third, 0},
            {third, 1 - third, 0},
            {0, 1, 0},
            {0, 1 - third, third},
            {0, third, 1 - third},
            {0, 0, 1},
            {0, 0, 1}
        };
        float[] wanted = new float[2 * 4 * 9 * 2];
        for (int i = 0; i < wanted.length; i++) {
            int channel = i % 2;
            int column = i / 2 % 9;
            int row = i / 18 % 4;
            int image = i / 72;
            double sum = 0;
            for (int r = 0; r < 2; r++) {
                for (int k = 0; k < 3; k++) {
                    sum += rows[row][r] * columns[column][k] * x[((image * 2 + r) * 3 + k) * 2 + channel];
                }
            }
            wanted[i] = (float) sum;
        }
        try (KerasImport imported = KerasImport.open(file, 2)) {
            Tensor found = Interpreter.run(imported.graph(), inputs(imported.graph(), each), Map.of())
                    .values()
                    .iterator()
                    .next();
            assertThat(found.shape()).isEqualTo(Shape.of(2, 4, 9, 2));
            close(found.toFloats(), wanted, "bilinear");
        }

        Files.writeString(file, text.replace("\"nearest\"", "\"bicubic\""));
        assertThatThrownBy(() -> KerasImport.open(file, 2))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("interpolation bicubic (nearest and bilinear are) is not supported");
    }

    // ---- the graph

    @Test
    void compiledItGivesTheSameBitsAndItIsDifferentiable() throws IOException {
        JsonNode each = cases().path("sequential");
        try (KerasImport imported = KerasImport.open(write(each, folder), 2);
                TilePool pool = new TilePool(1)) {
            Map<String, Tensor> inputs = inputs(imported.graph(), each);
            Map<String, Tensor> weights = OnnxRun.weights(imported);
            Map<String, Tensor> found = Interpreter.run(imported.graph(), inputs, weights);
            Map<String, Tensor> compiled = OnnxRun.compiled(imported.graph(), inputs, weights, pool);
            found.forEach((key, value) ->
                    assertThat(compiled.get(key).sameBits(value)).as(key).isTrue());

            assertThat(imported.statistics())
                    .hasSize(2)
                    .allMatch(statistic -> statistic.name().contains("/moving_"));
            GraphBuilder b = new GraphBuilder("loss");
            List<Value> operands = imported.graph().inputs().stream()
                    .map(input -> b.input(((Op.Input) input.op()).name(), input.type()))
                    .toList();
            Value y = b.inline(imported.graph(), operands).getFirst();
            Value loss = b.sum(b.multiply(y, y), 0, 1);
            List<Value> wrt =
                    b.values().stream().filter(v -> v.op() instanceof Op.Weight).toList();
            List<Value> gradients = Gradients.of(b, loss, wrt);
            for (int i = 0; i < wrt.size(); i++) {
                b.output(((Op.Weight) wrt.get(i).op()).name(), gradients.get(i));
            }
            Interpreter.run(b.build(), inputs, weights)
                    .forEach((name, gradient) -> assertThat(gradient.toFloats())
                            .as(name)
                            .isNotEqualTo(
                                    new float[Math.toIntExact(gradient.shape().elements())]));
        }
    }

    /// One step of a moving statistic goes (1 − momentum) of the way to the batch.
    @Test
    void inTrainingStatisticsFollowTheBatch() throws IOException {
        JsonNode each = cases().path("sequential");
        try (KerasModel model = KerasModel.open(write(each, folder))) {
            KerasImport imported = KerasImport.of(model, KerasBinding.batch(2).forTraining());
            Map<String, Tensor> inputs =
                    inputs(KerasImport.of(model, KerasBinding.batch(2)).graph(), each);
            inputs.put("key", Tensor.of(Shape.of(4), new int[] {1, 0, 0, 0}));
            Map<String, Tensor> weights = OnnxRun.weights(imported);
            GraphBuilder b = new GraphBuilder("loss");
            List<Value> operands = imported.graph().inputs().stream()
                    .map(input -> b.input(((Op.Input) input.op()).name(), input.type()))
                    .toList();
            Value loss = b.sum(b.inline(imported.graph(), operands).getFirst(), 0, 1);
            Value mean = b.values().stream()
                    .filter(v -> v.op() instanceof Op.Weight w && w.name().endsWith("moving_mean"))
                    .findFirst()
                    .orElseThrow();
            Value batch = b.values().stream()
                    .filter(v -> v.op() instanceof Op.Convolution)
                    .findFirst()
                    .orElseThrow(); // [2, 2, 6, 6], no bias
            b.output("gradient", Gradients.of(b, loss, List.of(mean)).getFirst());
            b.output("batch", b.multiply(b.sum(batch, 0, 2, 3), 1.0 / 72));
            Map<String, Tensor> found = Interpreter.run(b.build(), inputs, weights);
            float[] running = Objects.requireNonNull(weights.get(((Op.Weight) mean.op()).name()))
                    .toFloats();
            float[] way = Objects.requireNonNull(found.get("gradient")).toFloats();
            float[] average = Objects.requireNonNull(found.get("batch")).toFloats();
            for (int i = 0; i < running.length; i++) {
                float wanted = 0.01f * (running[i] - average[i]);
                assertThat(Math.abs(way[i] - wanted)).isLessThan(1e-6f); // sums in another order
            }
            assertThat(imported.parameters()).hasSize(5);
        }
    }

    @Test
    void reports() throws IOException {
        ModelReport report = KerasReport.of(resource("nested.keras"));
        assertThat(report.problem()).isNull();
        assertThat(report.facts()).anyMatch(fact -> fact.contains("Dense × 3"));
        assertThat(report.tensors()).hasSize(10);
    }

    /// w = value · scale + min.
    @ParameterizedTest
    @CsvSource({"uint8, 1", "uint16, 2", "float16, 2"})
    void quantised(String dtype, int width) throws IOException {
        JsonNode each = cases().path("dense");
        byte[] bytes = new byte[(20 + 4 + 12) * width];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (i * 37 & 0x3F); // as halves: finite
        }
        write(each, folder);
        Files.write(folder.resolve("group1-shard1of2.bin"), bytes);
        Files.write(folder.resolve("group1-shard2of2.bin"), new byte[0]);
        ObjectNode root = manifest(each);
        root.path("weightsManifest")
                .path(0)
                .path("weights")
                .forEach(weight -> ((ObjectNode) weight)
                        .putObject("quantization")
                        .put("dtype", dtype)
                        .put("scale", 0.25)
                        .put("min", -3.0));
        Files.writeString(folder.resolve("model.json"), root.toString());
        try (KerasImport imported = KerasImport.open(folder, 2)) {
            float[] kernel =
                    OnnxRun.weights(imported).values().iterator().next().toFloats();
            for (int i = 0; i < kernel.length; i++) {
                int low = bytes[i * width];
                int both = width == 1 ? low : low | bytes[i * width + 1] << 8;
                float wanted = dtype.equals("float16") ? Float.float16ToFloat((short) both) : both * 0.25f - 3;
                assertThat(kernel[i]).isEqualTo(wanted);
            }
        }
    }

    // ---- what is refused

    private void refused(String change, String with, String message) throws IOException {
        JsonNode each = cases().path("nested");
        write(each, folder);
        Path file = folder.resolve("model.json");
        String text = Files.readString(file);
        assertThat(text).containsPattern(change);
        Files.writeString(file, text.replaceAll(change, with));
        assertThatThrownBy(() -> KerasImport.open(file, 2).close())
                .isInstanceOf(IngotException.class)
                .hasMessageContaining(message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"class_name\":\"BatchNormalization\" | \"class_name\":\"Wonder\" | not supported: Wonder at"
                        + " batch_normalization",
                "\"class_name\":\"BatchNormalization\" | \"class_name\":\"Lambda\" | never executed",
                "\"units\":1, | \"units\":2, | by the configuration",
                "\"units\":1, | \"units\":2000000000, | by the configuration",
                "\"units\":1, | \"units\":20000000000, | a whole number below",
                "group1-shard2of2.bin | missing.bin | missing.bin is missing",
                "group1-shard2of2.bin | ../secret.bin | outside of its folder",
                "\"activation\":\"tanh\" | \"activation\":\"wave\" | activation wave is not known",
                "\"shape\":.3,1. | \"shape\":[2000000000,1] | of its shards, which have",
                "\"shape\":.3,1.,\"dtype\":\"float32\" | \"shape\":[3,1],\"dtype\":\"float8\" | dtype float8",
            })
    void wrongLayersModels(String change, String with, String message) throws IOException {
        refused(change, with, message);
    }

    @Test
    void cyclicGraph() throws IOException {
        JsonNode each = cases().path("merges");
        Path file = write(each, folder);
        String text = Files.readString(file);
        // the first layer that adds reads the one that multiplies, which reads it
        String add = text.replaceAll("(?s).*\"name\":\"(add_[^\"]*)\".*", "$1");
        String multiply = text.replaceAll("(?s).*\"name\":\"(multiply_[^\"]*)\".*", "$1");
        ObjectNode root = (ObjectNode) JsonMapper.shared().readTree(text);
        JsonNode layers = root.path("modelTopology").path("config").path("layers");
        for (JsonNode layer : layers) {
            String name = layer.path("name").asString();
            if (name.equals(add) || name.equals(multiply)) {
                ((ObjectNode) layer)
                        .putArray("inbound_nodes")
                        .addArray()
                        .addArray()
                        .add(name.equals(add) ? multiply : add)
                        .add(0)
                        .add(0);
            }
        }
        Files.writeString(file, root.toString());
        assertThatThrownBy(() -> KerasImport.open(file, 2).close())
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("cyclic");
    }

    @ParameterizedTest
    @ValueSource(strings = {"sequential.h5", "sequential.keras"})
    void truncated(String name) throws IOException {
        Path file = resource(name);
        byte[] whole = Files.readAllBytes(file);
        for (int part = 1; part < 12; part++) {
            Files.write(file, java.util.Arrays.copyOf(whole, whole.length * part / 12));
            assertThatThrownBy(() -> {
                        try (KerasImport imported = KerasImport.open(file, 2)) {
                            OnnxRun.weights(imported);
                        }
                    })
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining(file.toString());
        }
    }

    @Test
    void savedModelIsToldNotRead() throws IOException {
        Files.write(folder.resolve("saved_model.pb"), new byte[] {8, 1});
        assertThat(SavedModel.report(folder).problem()).contains("tf2onnx");
    }

    // ---- a model of the world

    /// nsfwjs 4.3.0's MobileNetV2; the numbers are what TensorFlow.js printed.
    @Test
    void mobileNet() throws IOException {
        String at = System.getenv("INGOT_NSFW");
        assumeTrue(at != null, "no INGOT_NSFW: the folder that scripts/keras-reference.mjs writes");
        try (KerasImport imported = KerasImport.open(Path.of(Objects.requireNonNull(at)), 1);
                TilePool pool = new TilePool(2)) {
            Value input = imported.graph().inputs().getFirst();
            float[] picture = new float[Math.toIntExact(input.shape().elements())];
            for (int i = 0; i < picture.length; i++) {
                picture[i] = (i * 7919L % 256) / 255f;
            }
            Tensor found = OnnxRun.compiled(
                            imported.graph(),
                            Map.of(((Op.Input) input.op()).name(), Tensor.of(input.shape(), picture)),
                            OnnxRun.weights(imported),
                            pool)
                    .values()
                    .iterator()
                    .next();
            float[] wanted = {
                0.5471470355987549f,
                0.023188123479485512f,
                0.4174425005912781f,
                0.009246856905519962f,
                0.002975527197122574f
            };
            for (int i = 0; i < wanted.length; i++) {
                assertThat(Math.abs(found.getFloat(i) - wanted[i])).isLessThan(1e-5f); // 53 layers in another order
            }
        }
    }
}
