package ingot.formats;

import ingot.ir.Type;

/// A weight that a configuration asks for, and where the three kinds of files keep it.
///
/// @param name of the weight in the graph: layer and weight, `block1/conv1/kernel`
/// @param layer the layer of the outermost model that it belongs to: the group of an `.h5` file
/// @param byClass where a `.keras` file has it, layers counted by their class: `layers/conv2d_1/vars/0`
/// @param byName the same with the layers' own names, as later versions write it
/// @param trainable false: a running statistic, or part of a frozen layer; such ones come last in an `.h5` file
/// @param learned false: a statistic, which no gradient changes
/// @param used false: only its place in the files counts
record KerasSlot(
        String name,
        String layer,
        String byClass,
        String byName,
        boolean trainable,
        boolean learned,
        boolean used,
        Type type) {}
