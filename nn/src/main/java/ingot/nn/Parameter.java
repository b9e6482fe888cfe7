package ingot.nn;

import ingot.ir.Type;

/// A weight of a model: where its first values come from, and whether weight decay applies to it.
public record Parameter(String name, Type type, Initializer initializer, boolean decay) {}
