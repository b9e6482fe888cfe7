package ingot.formats;

import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Randomness;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// One call of a layer: its inputs, its settings, and the weights that it has in the files.
///
/// @param slots all weights asked for so far, by name
/// @param place of the layer in the model
record KerasCall(
        GraphBuilder b,
        KerasLayer layer,
        List<Value> inputs,
        Place place,
        SequencedMap<String, KerasSlot> slots,
        Pass pass) {
    /// What all layers of a graph have in common.
    ///
    /// @param version of Keras that the configuration is of: 2 or 3
    /// @param random null: no dropout
    /// @param tracked names of the statistics that follow the batch
    record Pass(int version, int batch, @Nullable Randomness random, Predicate<String> tracked) {}

    /// Where a layer is: its path by names, the outermost layer, its two paths in a `.keras` file.
    record Place(String path, String outer, String byClass, String byName, boolean trainable) {
        static final Place ROOT = new Place("", "", "", "", true);

        /// A layer of a model; `counted` is its class with a number.
        Place layer(KerasLayer layer, String counted) {
            return new Place(
                    joined(path, layer.name()),
                    outer.isEmpty() ? layer.name() : outer,
                    joined(byClass, "layers/" + counted),
                    joined(byName, "layers/" + layer.name()),
                    trainable && layer.trainable());
        }

        /// A layer inside of another, which Keras keeps under an attribute; the name is part of the path where it says
        /// something.
        Place inner(String name, String attribute) {
            return new Place(
                    name.isEmpty() ? path : joined(path, name),
                    outer,
                    joined(byClass, attribute),
                    joined(byName, attribute),
                    trainable);
        }

        private static String joined(String first, String second) {
            return first.isEmpty() ? second : first + "/" + second;
        }
    }

    int version() {
        return pass.version();
    }

    Value in() {
        return inputs.getFirst();
    }

    /// The `index`-th variable of the layer.
    Value weight(int index, String name, int... dims) {
        return slot(index, name, place.trainable(), true, true, Type.f32(dims));
    }

    /// A variable that Keras keeps beside the weights: a running statistic.
    Value statistic(int index, String name, int... dims) {
        return slot(index, name, false, false, true, Type.f32(dims));
    }

    /// A variable that the graph has no use for.
    void unused(int index, String name) {
        KerasSlot slot = slotOf(index, name, false, false, false, Type.f32());
        slots.putIfAbsent(slot.name(), slot);
    }

    private Value slot(int index, String name, boolean trainable, boolean learned, boolean used, Type type) {
        KerasSlot slot = slotOf(index, name, trainable, learned, used, type);
        KerasSlot known = slots.putIfAbsent(slot.name(), slot);
        if (known != null && !known.equals(slot)) {
            throw new IngotException("the weight " + slot.name() + " is asked for as " + known.type() + " and as "
                    + type + "; two layers of one name, or one layer called with different sizes");
        }
        return b.weight(slot.name(), type);
    }

    private KerasSlot slotOf(int index, String name, boolean trainable, boolean learned, boolean used, Type type) {
        String end = "/vars/" + index;
        return new KerasSlot(
                place.path() + "/" + name,
                place.outer(),
                place.byClass() + end,
                place.byName() + end,
                trainable,
                learned,
                used,
                type);
    }

    /// The same layer on other inputs.
    KerasCall on(Value... others) {
        return new KerasCall(b, layer, List.of(others), place, slots, pass);
    }

    /// A call of the layer that a wrapper holds.
    KerasCall inner(KerasLayer other, String name, String attribute, List<Value> on) {
        return new KerasCall(b, other, on, place.inner(name, attribute), slots, pass);
    }

    /// What a layer with this activation gives for x.
    Value activated(String key, Value x) {
        return KerasActivations.apply(b, KerasActivations.name(layer, key, version()), x);
    }

    static void refuse(boolean condition, String what) {
        if (condition) {
            throw new IngotException(what + " is not supported");
        }
    }

    /// Values by name that a layer may not ignore.
    static void refuseSet(KerasLayer layer, Map<String, String> flags) {
        flags.forEach((key, reason) -> refuse(layer.flag(key, false), key + " (" + reason + ")"));
    }
}
