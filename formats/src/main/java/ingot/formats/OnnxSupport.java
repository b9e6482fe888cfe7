package ingot.formats;

import ingot.ir.IngotException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/// Which operators of a model have no meaning here, all of them at once.
final class OnnxSupport {
    private OnnxSupport() {}

    /// Refuses a model with such operators, or of an opset that nothing is known of.
    static void check(OnnxModel model) {
        List<String> problems = new ArrayList<>();
        long opset = model.opsets().getOrDefault("", 0L);
        if (opset != 0 && opset > OnnxModel.NEWEST_OPSET) {
            problems.add("opset " + opset + " of ai.onnx, newer than " + OnnxModel.NEWEST_OPSET);
        }
        unsupported(model).forEach((operator, nodes) -> problems.add(operator + " at " + String.join(", ", nodes)));
        if (!problems.isEmpty()) {
            throw new IngotException(
                    "onnx: " + model.path() + " needs what is not supported: " + String.join("; ", problems));
        }
    }

    /// Names of nodes by operator.
    static Map<String, List<String>> unsupported(OnnxModel model) {
        Map<String, OnnxOperator> known = OnnxOperators.table();
        Set<String> defined = new HashSet<>();
        model.functions().forEach(function -> defined.add(function.domain() + ":" + function.name()));
        Map<String, List<String>> found = new TreeMap<>();
        List<OnnxNode> nodes = new ArrayList<>(model.graph().nodes());
        model.functions().forEach(function -> nodes.addAll(function.nodes()));
        for (OnnxNode node : all(nodes)) {
            if (!known.containsKey(node.qualified()) && !defined.contains(node.domain() + ":" + node.operator())) {
                found.computeIfAbsent(node.qualified(), _ -> new ArrayList<>()).add(node.label());
            }
        }
        return found;
    }

    /// Nodes with those of the graphs inside them.
    static List<OnnxNode> all(List<OnnxNode> nodes) {
        List<OnnxNode> all = new ArrayList<>();
        for (OnnxNode node : nodes) {
            all.add(node);
            for (OnnxAttribute attribute : node.attributes().values()) {
                if (attribute instanceof OnnxAttribute.OfGraph(OnnxGraph graph)) {
                    all.addAll(all(graph.nodes()));
                }
            }
        }
        return all;
    }
}
