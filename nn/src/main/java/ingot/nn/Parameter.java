package ingot.nn;

import ingot.ir.Type;

/// A weight of a model: where its first values come from, and how it learns.
public record Parameter(String name, Type type, Initializer initializer, Rule rule) {
    /// How a weight learns from its gradient.
    public enum Rule {
        /// By the optimizer.
        PLAIN,
        /// By the optimizer, with weight decay.
        DECAY,
        /// By subtracting it, whatever the optimizer is: a running statistic of the batches.
        RUNNING
    }

    public Parameter(String name, Type type, Initializer initializer, boolean decay) {
        this(name, type, initializer, decay ? Rule.DECAY : Rule.PLAIN);
    }

    /// Weight decay applies to it.
    public boolean decay() {
        return rule == Rule.DECAY;
    }

    /// It is learned by gradients of the loss.
    public boolean learned() {
        return rule != Rule.RUNNING;
    }
}
