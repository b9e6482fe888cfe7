package ingot.formats;

import static ingot.formats.OnnxOperator.one;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/// Sequences of tensors inside a model: they have a length that is known at import, and vanish.
final class OnnxSequences {
    private OnnxSequences() {}

    static void addTo(Map<String, OnnxOperator> t) {
        t.put("SequenceEmpty", c -> c.isSequence(List.of()));
        t.put("SequenceConstruct", c -> c.isSequence(c.allInputs()));
        t.put("SequenceInsert", c -> {
            List<Value> values = new ArrayList<>(c.sequence(0));
            long at = c.has(2) ? c.longs(2).getFirst() : values.size();
            values.add(Math.toIntExact(at < 0 ? at + values.size() : at), c.in(1));
            return c.isSequence(values);
        });
        t.put("SequenceErase", c -> {
            List<Value> values = new ArrayList<>(c.sequence(0));
            values.remove(c.has(1) ? place(c, 1, values.size()) : values.size() - 1);
            return c.isSequence(values);
        });
        t.put("SequenceAt", one(c -> c.sequence(0).get(place(c, 1, c.sequence(0).size()))));
        t.put("SequenceLength", one(c -> c.b().reshape(c.ints(c.sequence(0).size()), Shape.SCALAR)));
        t.put("SplitToSequence", OnnxSequences::split);
        t.put("ConcatFromSequence", one(OnnxSequences::concat));
        t.put("SequenceMap", OnnxSequences::map);
    }

    static List<Value> identity(OnnxCall c) {
        List<Value> sequence = c.scope().sequence(c.node().inputs().getFirst());
        return sequence != null ? c.isSequence(sequence) : List.of(c.in(0));
    }

    private static int place(OnnxCall c, int input, int size) {
        long at = c.longs(input).getFirst();
        if (at < -size || at >= size) {
            throw new IngotException("place " + at + " of a sequence of " + size);
        }
        return (int) (at < 0 ? at + size : at);
    }

    private static List<Value> split(OnnxCall c) {
        GraphBuilder b = c.b();
        Value x = c.in(0);
        int axis = c.axis("axis", 0, x.shape().rank());
        int size = x.shape().dim(axis);
        List<Long> parts = Collections.nCopies(size, 1L);
        boolean kept = true;
        if (c.has(1)) {
            Tensor split = c.known(1);
            if (split.shape().rank() == 0) {
                parts = new ArrayList<>();
                for (long left = size; left > 0; left -= split.getLong(0)) {
                    parts.add(Math.min(left, split.getLong(0)));
                }
            } else {
                parts = c.longs(1);
            }
        } else {
            kept = c.integer("keepdims", 1) != 0;
        }
        List<Value> pieces = OnnxShapes.pieces(b, x, axis, parts);
        return c.isSequence(
                kept
                        ? pieces
                        : pieces.stream()
                                .map(p -> b.reshape(p, p.shape().without(List.of(axis))))
                                .toList());
    }

    private static Value concat(OnnxCall c) {
        GraphBuilder b = c.b();
        List<Value> values = c.sequence(0);
        if (values.isEmpty()) {
            throw new IngotException("an empty sequence has no concatenation");
        }
        int rank = values.getFirst().shape().rank();
        if (!c.flag("new_axis")) {
            return b.concatenate(values, c.axis("axis", 0, rank));
        }
        int axis = c.axis("axis", 0, rank + 1);
        List<Value> rows = new ArrayList<>();
        for (Value value : values) {
            List<Integer> dims = new ArrayList<>(OnnxShapes.dims(value));
            dims.add(axis, 1);
            rows.add(b.reshape(value, Shape.of(dims)));
        }
        return b.concatenate(rows, axis);
    }

    /// Runs the body once per element; further operands are sequences of the same length, or tensors for all.
    private static List<Value> map(OnnxCall c) {
        OnnxGraph body = c.graph("body");
        List<List<Value>> results = new ArrayList<>();
        body.outputs().forEach(_ -> results.add(new ArrayList<>()));
        for (int n = 0; n < c.sequence(0).size(); n++) {
            OnnxScope scope = new OnnxScope(c.scope());
            for (int i = 0; i < c.inputs(); i++) {
                List<Value> sequence = c.scope().sequence(c.node().inputs().get(i));
                scope.define(body.inputs().get(i).name(), sequence != null ? sequence.get(n) : c.in(i));
            }
            c.importer().body(body, scope, c.importer().model().opsets());
            for (int i = 0; i < results.size(); i++) {
                results.get(i).add(scope.tensor(body.outputs().get(i).name()));
            }
        }
        for (int i = 0; i < results.size(); i++) {
            c.scope().define(c.node().outputs().get(i), results.get(i));
        }
        return List.of();
    }
}
