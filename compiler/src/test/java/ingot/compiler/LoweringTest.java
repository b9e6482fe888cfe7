package ingot.compiler;

import static ingot.compiler.Lowerings.checked;
import static ingot.compiler.Lowerings.graph;
import static ingot.compiler.Lowerings.kinds;
import static org.assertj.core.api.Assertions.assertThat;

import ingot.compiler.Kernel.Matmul.Old;
import ingot.ir.DType;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Op.ReduceKind;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.testkit.RandomGraphs;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Every way a graph becomes kernels: the same bits as the graph, and the kernels one expects.
class LoweringTest {
    @ParameterizedTest
    @ValueSource(longs = {0, 100, 200, 300})
    void randomGraphs(long first) {
        for (long seed = first; seed < first + 100; seed++) {
            checked(RandomGraphs.of(seed, 5 + (int) (seed % 30)));
        }
    }

    // ---- results

    @Test
    void aResultThatIsAnInputStaysThere() {
        Lowered lowered = checked(graph(b -> b.reshape(b.input("x", Type.f32(2, 6)), 3, 4)));
        assertThat(lowered.calls()).isEmpty();
        assertThat(lowered.results()).containsExactly(new Lowered.Operand(Lowered.Slot.INPUT, 0, 0));
    }

    @Test
    void aContiguousPartOfAnInputIsAResultAtItsOffset() {
        Lowered lowered = checked(graph(b -> b.slice(b.input("x", Type.f32(4, 3)), 0, 2, 4)));
        assertThat(lowered.results()).containsExactly(new Lowered.Operand(Lowered.Slot.INPUT, 0, 24));
    }

    @Test
    void aStridedViewIsCopied() {
        Lowered lowered = checked(graph(b -> b.transpose(b.input("x", Type.f32(4, 3)), 1, 0)));
        assertThat(kinds(lowered)).containsExactly("map");
    }

    @Test
    void aConstantResultIsWritten() {
        assertThat(kinds(checked(graph(b -> b.fullLike(b.input("x", Type.f32(4, 3)), 2.5)))))
                .containsExactly("map");
    }

    @Test
    void aConstantTensorIsReadFromMemory() {
        Lowered lowered =
                checked(graph(b -> b.add(b.input("x", Type.f32(3)), b.constant(Tensor.of(Shape.of(3), 1f, 2f, 3f)))));
        assertThat(lowered.constants()).hasSize(1);
    }

    @Test
    void aConstantOfOneRepeatedElementIsPartOfTheCode() {
        Lowered lowered =
                checked(graph(b -> b.add(b.input("x", Type.f32(3)), b.constant(Tensor.of(Shape.of(3), 2f, 2f, 2f)))));
        assertThat(lowered.constants()).isEmpty();
    }

    @Test
    void oneResultUnderTwoNames() {
        GraphBuilder b = new GraphBuilder("test");
        Value y = b.exp(b.input("x", Type.f32(5)));
        b.output("a", y);
        b.output("b", b.reshape(y, 5, 1));
        Lowered lowered = checked(b.build());
        assertThat(kinds(lowered)).containsExactly("map");
        assertThat(lowered.results().get(1)).isEqualTo(lowered.results().get(0));
    }

    @Test
    void emptyTensorsNeedNoCalls() {
        assertThat(checked(graph(b -> b.exp(b.input("x", Type.f32(0, 4))))).calls())
                .isEmpty();
        assertThat(kinds(checked(graph(b -> b.sum(b.input("x", Type.f32(0, 4)), 0)))))
                .containsExactly("loop Reduce");
    }

    // ---- maps

    @Test
    void pointwiseOpsAreOneMapOverTheCoarsestSpace() {
        Lowered lowered = checked(graph(b -> {
            Value x = b.input("x", Type.f32(2, 3, 4));
            return b.multiply(b.exp(x), b.add(x, b.input("y", Type.f32(2, 3, 4))));
        }));
        assertThat(kinds(lowered)).containsExactly("map");
        assertThat(lowered.calls().getFirst().kernel().reads().getFirst().shape())
                .isEqualTo(Shape.of(24));
    }

    @Test
    void reshapesBetweenPointwiseOpsCostNothing() {
        Lowered lowered = checked(graph(b -> {
            Value x = b.exp(b.input("x", Type.f32(6, 4)));
            Value rows = b.add(b.reshape(x, 2, 3, 4), b.input("y", Type.f32(2, 1, 4)));
            return b.add(b.reshape(rows, 24), b.input("z", Type.f32(24)));
        }));
        assertThat(kinds(lowered)).containsExactly("map");
    }

    @Test
    void repeatedRowsUnderAnotherShapeAreStillAView() {
        Lowered lowered = checked(graph(b -> {
            Value positions = b.broadcast(b.input("p", Type.f32(3, 4)), Shape.of(2, 3, 4));
            return b.add(b.input("x", Type.f32(6, 4)), b.reshape(positions, 6, 4));
        }));
        assertThat(kinds(lowered)).containsExactly("map");
    }

    @Test
    void masksFromIotasAreComputedInTheKernel() {
        Lowered lowered = checked(graph(b -> {
            Type square = Type.i32(5, 5);
            Value mask = b.compare(Op.CompareKind.GREATER_EQUAL, b.iota(square, 0), b.iota(square, 1));
            Value x = b.input("x", Type.f32(2, 5, 5));
            return b.select(b.broadcast(mask, x.shape()), x, b.constant(-1f));
        }));
        assertThat(kinds(lowered)).containsExactly("map");
        assertThat(lowered.calls().getFirst().kernel().reads()).hasSize(1);
    }

    @Test
    void reversedAndSlicedOperands() {
        Lowered lowered = checked(graph(b -> {
            Value x = b.input("x", Type.f32(4, 6));
            Value reversed = b.add(new Op.Reverse(x, List.of(0, 1)));
            Value strided = b.add(new Op.Slice(reversed, List.of(0, 1), List.of(4, 6), List.of(2, 2)));
            return b.exp(strided);
        }));
        Lowered.Call call = lowered.calls().getFirst();
        assertThat(call.kernel().reads().getFirst().strides()).containsExactly(-12L, -2L);
        assertThat(call.operands().getFirst().byteOffset()).isEqualTo(4 * 22);
    }

    @Test
    void otherElementTypesAreLoops() {
        assertThat(kinds(checked(graph(b -> b.convert(b.input("x", new Type(DType.BF16, Shape.of(4))), DType.F32)))))
                .containsExactly("loop Convert");
    }

    @Test
    void aPadIsAFillAndACopy() {
        Lowered lowered = checked(graph(b -> b.add(new Op.Pad(
                b.exp(b.input("x", Type.f32(2, 3))), b.constant(7f), List.of(1, 0), List.of(0, 2), List.of(1, 1)))));
        assertThat(kinds(lowered)).containsExactly("map", "map", "map");
    }

    @Test
    void producersWriteIntoTheirConcatenation() {
        Lowered lowered = checked(graph(b -> {
            Value x = b.exp(b.input("x", Type.f32(2, 3)));
            Value y = b.matmul(b.input("a", Type.f32(2, 4)), b.input("b", Type.f32(4, 5)));
            return b.concatenate(List.of(x, y), 1);
        }));
        assertThat(kinds(lowered)).containsExactlyInAnyOrder("map", "matmul");
    }

    // ---- reductions

    @Test
    void reductionsAlongAnyAxes() {
        for (List<Integer> axes : List.of(
                List.of(0),
                List.of(1),
                List.of(2),
                List.of(0, 1),
                List.of(1, 2),
                List.of(0, 2),
                List.of(0, 1, 2),
                List.<Integer>of())) {
            for (ReduceKind kind : List.of(ReduceKind.SUM, ReduceKind.MAX, ReduceKind.PRODUCT)) {
                checked(graph(b -> b.add(new Op.Reduce(kind, b.exp(b.input("x", Type.f32(3, 20, 5))), axes, 1))));
            }
        }
    }

    @Test
    void aTrailingAxisIsARowAndALeadingAxisAColumn() {
        assertThat(kinds(checked(graph(b -> b.sum(b.exp(b.input("x", Type.f32(3, 5))), 1)))))
                .containsExactly("row");
        assertThat(kinds(checked(graph(b -> b.sum(b.exp(b.input("x", Type.f32(3, 5))), 0)))))
                .containsExactly("column");
    }

    @Test
    void sumsOfSegments() {
        for (List<Integer> axes : List.of(List.of(0), List.of(0, 1), List.of(1), List.of(0, 1, 2))) {
            Lowered lowered = checked(graph(b ->
                    b.add(new Op.Reduce(ReduceKind.SUM, b.exp(b.input("x", Type.f32(4, 6, 5))), axes, 2))));
            assertThat(kinds(lowered)).containsExactly("column");
        }
    }

    @Test
    void whatFollowsAColumnSumJoinsIt() {
        Lowered lowered = checked(graph(b -> {
            Value x = b.input("x", Type.f32(6, 5));
            return b.multiply(b.sum(b.multiply(x, x), 0), b.input("scale", Type.f32(5)));
        }));
        assertThat(kinds(lowered)).containsExactly("column");
    }

    @Test
    void columnSumsThatShareAReadAreOneKernel() {
        GraphBuilder b = new GraphBuilder("test");
        Value x = b.input("x", Type.f32(6, 5));
        b.output("a", b.sum(x, 0));
        b.output("b", b.sum(b.multiply(x, b.input("y", Type.f32(6, 5))), 0));
        assertThat(kinds(checked(b.build()))).containsExactly("column");
    }

    // ---- contractions

    @Test
    void batchedHeadsOfOneBufferAreViews() {
        Lowered lowered = checked(graph(b -> {
            Value all = b.input("qkv", Type.f32(2, 7, 3 * 12));
            Value[] parts = new Value[3];
            for (int i = 0; i < 3; i++) {
                Value part = b.reshape(b.slice(all, 2, 12 * i, 12 * (i + 1)), 2, 7, 3, 4);
                parts[i] = b.transpose(part, 0, 2, 1, 3); // [batch, head, time, width]
            }
            Value scores = b.matmul(parts[0], b.transpose(parts[1], 0, 1, 3, 2));
            Value mixed = b.matmul(scores, parts[2]);
            return b.matmul(b.reshape(b.transpose(mixed, 0, 2, 1, 3), 14, 12), b.input("w", Type.f32(12, 5)));
        }));
        assertThat(kinds(lowered)).containsExactly("matmul", "matmul", "matmul");
    }

    @Test
    void aBiasRowIsAddedByTheMatmul() {
        Lowered lowered = checked(graph(b -> {
            Value y = b.matmul(b.input("x", Type.f32(6, 4)), b.input("w", Type.f32(4, 5)));
            return b.add(b.input("bias", Type.f32(5)), b.reshape(y, 2, 3, 5));
        }));
        assertThat(kinds(lowered)).containsExactly("matmul");
        assertThat(((Kernel.Matmul) lowered.calls().getFirst().kernel()).bias()).isNotNull();
    }

    @Test
    void aProductThatIsNeededItselfKeepsItsBiasApart() {
        GraphBuilder b = new GraphBuilder("test");
        Value y = b.matmul(b.input("x", Type.f32(6, 4)), b.input("w", Type.f32(4, 5)));
        b.output("product", y);
        b.output("sum", b.add(y, b.input("bias", Type.f32(5))));
        assertThat(kinds(checked(b.build()))).containsExactly("matmul", "map");
    }

    @Test
    void aColumnOfBiasesIsNoBias() {
        Lowered lowered = checked(graph(b -> {
            Value y = b.matmul(b.input("x", Type.f32(6, 4)), b.input("w", Type.f32(4, 5)));
            return b.add(y, b.input("column", Type.f32(6, 1)));
        }));
        assertThat(kinds(lowered)).containsExactly("matmul", "map");
    }

    @Test
    void aSumOfProductsIsAccumulatedInItsMemory() {
        Lowered lowered = checked(graph(b -> {
            Value x = b.matmul(b.input("a", Type.f32(6, 4)), b.input("b", Type.f32(4, 5)));
            Value y = b.matmul(b.input("c", Type.f32(6, 3)), b.input("d", Type.f32(3, 5)));
            return b.add(b.add(x, y), b.matmul(b.input("e", Type.f32(6, 2)), b.input("f", Type.f32(2, 5))));
        }));
        assertThat(kinds(lowered)).containsExactly("matmul", "matmul", "matmul");
        assertThat(lowered.calls())
                .extracting(call -> ((Kernel.Matmul) call.kernel()).old())
                .containsExactly(Old.REPLACED, Old.ADDED, Old.ADDED);
        assertThat(lowered.temporaryBytes()).isEmpty();
    }

    @Test
    void aProductThatIsNeededItselfIsNotAddedTo() {
        GraphBuilder b = new GraphBuilder("test");
        Value x = b.matmul(b.input("a", Type.f32(6, 4)), b.input("b", Type.f32(4, 5)));
        Value y = b.matmul(b.input("c", Type.f32(6, 3)), b.input("d", Type.f32(3, 5)));
        b.output("sum", b.add(x, y));
        b.output("x", x);
        b.output("y", b.exp(y));
        assertThat(kinds(checked(b.build()))).containsExactlyInAnyOrder("matmul", "matmul", "map");
    }

    @Test
    void severalContractedAxesInTheListedOrder() {
        for (List<Integer> order : List.of(List.of(0, 2), List.of(2, 0))) {
            checked(graph(b -> b.dot(
                    b.input("x", Type.f32(3, 4, 5)),
                    b.input("y", Type.f32(3, 5, 6)),
                    List.of(),
                    List.of(),
                    order,
                    order.equals(List.of(0, 2)) ? List.of(0, 1) : List.of(1, 0))));
        }
    }

    @Test
    void freeAxesThatDoNotMergeBecomeBatchAxes() {
        Lowered lowered = checked(graph(b -> {
            Value x = b.transpose(b.input("x", Type.f32(3, 4, 5)), 1, 0, 2);
            return b.dot(x, b.input("w", Type.f32(5, 6)), List.of(), List.of(), List.of(2), List.of(0));
        }));
        assertThat(kinds(lowered)).containsExactly("matmul");
    }

    @Test
    void aTransposedProductExchangesItsOperands() {
        Lowered lowered = checked(graph(b -> {
            Value y = b.matmul(b.input("x", Type.f32(6, 4)), b.input("w", Type.f32(4, 5)));
            return b.exp(b.transpose(y, 1, 0));
        }));
        Kernel.Matmul matmul = (Kernel.Matmul) lowered.calls().getFirst().kernel();
        assertThat(matmul.c()).isEqualTo(Layout.rowMajor(Type.f32(5, 6)));
        assertThat(lowered.calls().getFirst().operands().getFirst().index()).isEqualTo(1);
    }

    @Test
    void segmentedProduct() {
        Lowered lowered = checked(graph(b -> b.add(new Op.Dot(
                b.input("x", Type.f32(6, 4)),
                b.input("y", Type.f32(6, 5)),
                List.of(),
                List.of(),
                List.of(0),
                List.of(0),
                3))));
        assertThat(((Kernel.Matmul) lowered.calls().getFirst().kernel()).segments())
                .isEqualTo(3);
    }

    // ---- indexing

    @Test
    void gatherAndScatterAlongAnyAxis() {
        for (int axis = 0; axis < 3; axis++) {
            int at = axis;
            assertThat(kinds(checked(graph(
                            b -> b.gather(b.input("x", Type.f32(4, 4, 4)), b.input("i", Type.i32(2, 3)), at)))))
                    .containsExactly("gather");
        }
        for (int axis = 0; axis < 2; axis++) {
            int at = axis;
            assertThat(kinds(checked(graph(b -> b.add(
                            new Op.ScatterAdd(b.input("i", Type.i32(6)), b.input("x", Type.f32(6, 6)), at, 4, 2))))))
                    .containsExactly("scatter-add");
        }
    }

    @Test
    void anIndexingOfAFusedView() {
        checked(graph(b -> {
            Value table = b.transpose(b.exp(b.input("x", Type.f32(3, 8))), 1, 0);
            return b.gather(table, b.convert(b.iota(Type.i32(5), 0), DType.I32), 0);
        }));
    }
}
