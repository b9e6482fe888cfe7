package ingot.formats;

import ingot.ir.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeMap;

/// What an ONNX file holds, without its data.
///
/// @param inputs and `outputs`: names and types with symbolic sizes, `input_ids : INT64[batch, sequence]`
/// @param operators how often each operator is used, those of inner graphs included
/// @param unsupported names of the nodes of each operator that has no meaning here
/// @param initializers how many tensors the file holds, and their bytes
/// @param tensors the tensors by name, as they are used here
public record OnnxReport(
        String producer,
        long irVersion,
        Map<String, Long> opsets,
        List<String> inputs,
        List<String> outputs,
        SequencedMap<String, Integer> operators,
        Map<String, List<String>> unsupported,
        int initializers,
        long initializerBytes,
        SequencedMap<String, Type> tensors) {
    public static OnnxReport of(OnnxModel model) {
        TreeMap<String, Integer> operators = new TreeMap<>();
        List<OnnxNode> nodes = new ArrayList<>(model.graph().nodes());
        model.functions().forEach(function -> nodes.addAll(function.nodes()));
        OnnxSupport.all(nodes).forEach(node -> operators.merge(node.qualified(), 1, Integer::sum));
        long bytes = 0;
        for (OnnxTensor tensor : model.graph().initializers()) {
            bytes += tensor.bytes();
        }
        return new OnnxReport(
                model.producer(),
                model.irVersion(),
                model.opsets(),
                model.graph().freeInputs().stream().map(OnnxReport::text).toList(),
                model.graph().outputs().stream().map(OnnxReport::text).toList(),
                operators,
                OnnxSupport.unsupported(model),
                model.graph().initializers().size(),
                bytes,
                new OnnxTensors(model).types());
    }

    private static String text(OnnxGraph.Port port) {
        String kind = port.kind() == OnnxGraph.Kind.TENSOR
                ? ""
                : port.kind().name().toLowerCase(java.util.Locale.ROOT) + " of ";
        return port.name() + " : " + kind
                + (port.type() == null ? "?" : port.type().name()) + (port.dims() == null ? "" : port.dims());
    }
}
