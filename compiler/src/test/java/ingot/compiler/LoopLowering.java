package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// The simplest lowering: one loop kernel per op, no views, no fusion.
final class LoopLowering {
    private LoopLowering() {}

    static Lowered lower(Graph graph) {
        List<Type> inputs = new ArrayList<>();
        List<Tensor> constants = new ArrayList<>();
        List<Long> temporaries = new ArrayList<>();
        List<Lowered.Call> calls = new ArrayList<>();
        Map<Value, Lowered.Operand> at = new HashMap<>();
        List<Value> outputs = List.copyOf(graph.outputs().values());
        for (Value value : graph.values()) {
            if (value.op() instanceof Op.Input || value.op() instanceof Op.Weight) {
                at.put(value, new Lowered.Operand(Lowered.Slot.INPUT, inputs.size(), 0));
                inputs.add(value.type());
                continue;
            }
            if (value.op() instanceof Op.Constant constant) {
                at.put(value, new Lowered.Operand(Lowered.Slot.CONSTANT, constants.size(), 0));
                constants.add(constant.data());
                continue;
            }
            int output = outputs.indexOf(value);
            if (output >= 0) {
                at.put(value, new Lowered.Operand(Lowered.Slot.OUTPUT, output, 0));
            } else {
                at.put(value, new Lowered.Operand(Lowered.Slot.TEMPORARY, temporaries.size(), 0));
                temporaries.add(value.type().bytes());
            }
            GraphBuilder body = new GraphBuilder("op");
            Map<Value, Value> mapped = new HashMap<>();
            List<Layout> reads = new ArrayList<>();
            List<Lowered.Operand> operands = new ArrayList<>();
            for (Value operand : value.op().operands()) {
                if (!mapped.containsKey(operand)) {
                    mapped.put(operand, body.input(Integer.toString(reads.size()), operand.type()));
                    reads.add(Layout.rowMajor(operand.type()));
                    operands.add(at.get(operand));
                }
            }
            body.output("0", body.add(Operands.replace(value.op(), mapped::get)));
            operands.add(at.get(value));
            calls.add(new Lowered.Call(
                    new Kernel.Loop(body.build(), reads, List.of(Layout.rowMajor(value.type()))), operands));
        }
        return new Lowered(
                inputs,
                outputs.stream().map(Value::type).toList(),
                constants,
                temporaries,
                calls,
                outputs.stream().map(at::get).toList());
    }
}
