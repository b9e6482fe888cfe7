package ingot.testkit;

import ingot.ir.Graph;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import java.util.Map;

/// A graph with everything it needs to run.
public record GraphCase(Graph graph, Map<String, Tensor> inputs, Map<String, Tensor> weights) {
    public GraphCase {
        inputs = Map.copyOf(inputs);
        weights = Map.copyOf(weights);
    }

    /// The outputs by the reference interpreter.
    public Map<String, Tensor> interpret() {
        return Interpreter.run(graph, inputs, weights);
    }
}
