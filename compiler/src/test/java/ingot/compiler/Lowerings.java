package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Tensor;
import ingot.ir.Value;
import ingot.testkit.Bits;
import ingot.testkit.GraphCase;
import ingot.testkit.RandomTensors;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.Function;

/// Runs lowered graphs call by call in the reference interpreter and compares with the graph itself.
final class Lowerings {
    private Lowerings() {}

    /// A graph of one result.
    static Graph graph(Function<GraphBuilder, Value> body) {
        GraphBuilder b = new GraphBuilder("test");
        b.output("y", body.apply(b));
        return b.build();
    }

    static GraphCase random(Graph graph, long seed) {
        SplittableRandom random = new SplittableRandom(seed);
        Map<String, Tensor> inputs = new HashMap<>();
        Map<String, Tensor> weights = new HashMap<>();
        for (Value value : graph.values()) {
            if (value.op() instanceof Op.Input input) {
                inputs.put(input.name(), RandomTensors.of(value.type(), random));
            } else if (value.op() instanceof Op.Weight weight) {
                weights.put(weight.name(), RandomTensors.of(value.type(), random));
            }
        }
        return new GraphCase(graph, inputs, weights);
    }

    static Map<String, Tensor> run(Lowered lowered, GraphCase example) {
        List<Tensor> arguments = new ArrayList<>();
        for (Value value : example.graph().values()) {
            if (value.op() instanceof Op.Input input) {
                arguments.add(example.inputs().get(input.name()));
            } else if (value.op() instanceof Op.Weight weight) {
                arguments.add(example.weights().get(weight.name()));
            }
        }
        List<Tensor> results = KernelInterpreter.run(lowered, arguments, new ReferenceBackend());
        Map<String, Tensor> named = new LinkedHashMap<>();
        int i = 0;
        for (String key : example.graph().outputs().keySet()) {
            named.put(key, results.get(i++));
        }
        return named;
    }

    /// Lowers a graph and checks that its kernels compute what it says, bit for bit.
    static Lowered checked(GraphCase example) {
        Lowered lowered = Lowering.lower(example.graph());
        Bits.assertSameBits(example.interpret(), run(lowered, example), lowered.describe());
        return lowered;
    }

    static Lowered checked(Graph graph) {
        return checked(random(graph, 1));
    }

    static List<String> kinds(Lowered lowered) {
        return lowered.calls().stream().map(call -> call.kernel().kind()).toList();
    }
}
