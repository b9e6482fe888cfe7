package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Interpreter;
import ingot.ir.Op;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Attention;
import ingot.testkit.RandomTensors;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What a binding decides, and what a file defines itself.
class OnnxImportTest {
    private static final int FLOAT = 1;
    private static final int INT64 = 7;
    private static final int BOOL = 9;

    @TempDir
    private Path folder;

    @Test
    void functionsOfTheFileSeeTheAttributesOfTheirCall() {
        OnnxBytes leaky = OnnxBytes.node("inner", "LeakyRelu", "out", "in")
                .message(5, new OnnxBytes().text(1, "alpha").text(21, "slope").integer(20, 1));
        OnnxBytes function = new OnnxBytes()
                .text(1, "Bend")
                .text(4, "in")
                .text(5, "out")
                .text(6, "slope")
                .message(7, leaky)
                .message(9, new OnnxBytes().text(1, "").integer(2, 17))
                .text(10, "mine");
        OnnxBytes call = OnnxBytes.node("call", "Bend", "y", "x")
                .text(7, "mine")
                .message(5, new OnnxBytes().text(1, "slope").floating(2, 0.5f).integer(20, 1));
        OnnxBytes graph = new OnnxBytes()
                .message(1, call)
                .message(11, OnnxBytes.port("x", FLOAT, 2))
                .message(12, OnnxBytes.port("y", FLOAT, 2));
        Graph imported = imported(
                new OnnxBytes()
                        .integer(1, 8)
                        .message(7, graph)
                        .message(8, new OnnxBytes().text(1, "").integer(2, 17))
                        .message(25, function)
                        .toBytes(),
                OnnxBinding.NONE);
        Tensor y = Interpreter.run(imported, Map.of("x", Tensor.of(Shape.of(2), -4f, 4f)), Map.of())
                .get("y");
        assertThat(y.toFloats()).containsExactly(-2, 4);
    }

    @Test
    void shapesThatDependOnInputsNameThem() {
        OnnxBytes graph = new OnnxBytes()
                .message(1, OnnxBytes.node("fold", "Reshape", "y", "x", "shape"))
                .message(11, OnnxBytes.port("x", FLOAT, 6))
                .message(11, OnnxBytes.port("shape", INT64, 2))
                .message(12, OnnxBytes.port("y", FLOAT, "a", "b"));
        byte[] model = OnnxBytes.model(graph);
        assertThatThrownBy(() -> imported(model, OnnxBinding.NONE))
                .isInstanceOfSatisfying(OnnxDataDependentException.class, e -> {
                    assertThat(e.inputs()).isEqualTo(Set.of("shape"));
                    assertThat(e).hasMessageContaining("node fold (Reshape)").hasMessageContaining("[shape]");
                });
        Graph bound = imported(model, OnnxBinding.NONE.constant("shape", Tensor.of(Shape.of(2), 2, 3)));
        assertThat(bound.output("y").shape()).isEqualTo(Shape.of(2, 3));
        assertThat(bound.inputs()).hasSize(1);
    }

    @Test
    void trainingBringsBackDropout() {
        OnnxBytes graph = new OnnxBytes()
                .message(1, OnnxBytes.node("drop", "Dropout", "y", "x"))
                .message(11, OnnxBytes.port("x", FLOAT, 1000))
                .message(12, OnnxBytes.port("y", FLOAT, 1000));
        Graph inference = imported(OnnxBytes.model(graph), OnnxBinding.NONE);
        assertThat(inference.output("y").op()).isInstanceOf(Op.Input.class);
        Graph training = imported(OnnxBytes.model(graph), OnnxBinding.NONE.forTraining());
        float[] ones = new float[1000];
        java.util.Arrays.fill(ones, 1);
        float[] y = Interpreter.run(
                        training,
                        Map.of("x", Tensor.of(Shape.of(1000), ones), "key", Tensor.of(Shape.of(4), 1, 2, 3, 0)),
                        Map.of())
                .get("y")
                .toFloats();
        int kept = 0;
        for (float value : y) {
            assertThat(value).isIn(0f, 2f);
            kept += value > 0 ? 1 : 0;
        }
        assertThat(kept).isBetween(430, 570); // 4.4 deviations
    }

    /// A condition that is only known at run time: both branches, and a selection.
    @Test
    void branchesAreSelectedAtRunTime() {
        OnnxBytes yes = new OnnxBytes()
                .message(1, OnnxBytes.node("up", "Add", "a", "x", "x"))
                .message(12, OnnxBytes.port("a", FLOAT, 1));
        OnnxBytes no = new OnnxBytes()
                .message(1, OnnxBytes.node("down", "Neg", "b", "x"))
                .message(12, OnnxBytes.port("b", FLOAT, 1));
        OnnxBytes branch = OnnxBytes.node("choice", "If", "y", "c")
                .message(
                        5,
                        new OnnxBytes().text(1, "then_branch").message(6, yes).integer(20, 5))
                .message(
                        5, new OnnxBytes().text(1, "else_branch").message(6, no).integer(20, 5));
        OnnxBytes graph = new OnnxBytes()
                .message(1, branch)
                .message(11, OnnxBytes.port("x", FLOAT, 1))
                .message(11, OnnxBytes.port("c", BOOL))
                .message(12, OnnxBytes.port("y", FLOAT, 1));
        Graph imported = imported(OnnxBytes.model(graph), OnnxBinding.NONE);
        for (boolean condition : new boolean[] {true, false}) {
            Tensor y = Interpreter.run(
                            imported,
                            Map.of("x", Tensor.of(Shape.of(1), 3f), "c", Tensor.of(Shape.SCALAR, condition)),
                            Map.of())
                    .get("y");
            assertThat(y.getFloat(0)).isEqualTo(condition ? 6 : -3);
        }
    }

    /// ONNX has heads before time, `nn` time before heads; both share key heads and hide the future.
    @Test
    void attentionIsThatOfTheOtherModels() {
        OnnxBytes graph = new OnnxBytes()
                .message(
                        1,
                        OnnxBytes.node("look", "Attention", "y", "q", "k", "v")
                                .message(
                                        5,
                                        new OnnxBytes()
                                                .text(1, "is_causal")
                                                .integer(3, 1)
                                                .integer(20, 2)))
                .message(11, OnnxBytes.port("q", FLOAT, 2, 4, 5, 8))
                .message(11, OnnxBytes.port("k", FLOAT, 2, 2, 5, 8))
                .message(11, OnnxBytes.port("v", FLOAT, 2, 2, 5, 8))
                .message(12, OnnxBytes.port("y", FLOAT, 2, 4, 5, 8));
        GraphBuilder b = new GraphBuilder("nn");
        Value q = b.transpose(b.input("q", Type.f32(2, 4, 5, 8)), 0, 2, 1, 3);
        Value k = b.transpose(b.input("k", Type.f32(2, 2, 5, 8)), 0, 2, 1, 3);
        Value v = b.transpose(b.input("v", Type.f32(2, 2, 5, 8)), 0, 2, 1, 3);
        Value y = Attention.attention(b, q, k, v, null, Attention.Options.of(true, 8), null);
        b.output("y", b.transpose(y, 0, 2, 1, 3));
        Map<String, Tensor> inputs = Map.of(
                "q", RandomTensors.of(Type.f32(2, 4, 5, 8), 1),
                "k", RandomTensors.of(Type.f32(2, 2, 5, 8), 2),
                "v", RandomTensors.of(Type.f32(2, 2, 5, 8), 3));
        float[] found = Interpreter.run(imported(OnnxBytes.model(graph), OnnxBinding.NONE), inputs, Map.of())
                .get("y")
                .toFloats();
        assertThat(found)
                .containsExactly(
                        Interpreter.run(b.build(), inputs, Map.of()).get("y").toFloats(), offset(1e-5f));
    }

    private Graph imported(byte[] bytes, OnnxBinding binding) {
        Path file = folder.resolve("model.onnx");
        try {
            Files.write(file, bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        try (OnnxModel model = OnnxModel.open(file)) {
            return OnnxImport.of(model, binding).graph();
        }
    }
}
