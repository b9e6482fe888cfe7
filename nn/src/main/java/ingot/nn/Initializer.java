package ingot.nn;

/// The first values of a parameter.
public sealed interface Initializer {
    record Normal(double deviation) implements Initializer {}

    /// Uniform in [−bound, bound).
    record Uniform(double bound) implements Initializer {}

    record Constant(double value) implements Initializer {}
}
