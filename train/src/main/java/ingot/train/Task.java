package ingot.train;

import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;

/// What is learned: parameters, a loss, and the data of every step.
///
/// @param lossGraph the graph for a batch of the given size; its output `loss` is a sum over the batch, scaled so that
/// the parts add up @param batched inputs with the batch on axis 0
/// @param keyed the graph has the input `key` (I32[4]) for random bits
/// @param start where the weights begin, and which of them are frozen
public record Task(
        List<Parameter> parameters,
        IntFunction<Graph> lossGraph,
        Set<String> batched,
        boolean keyed,
        Feed feed,
        Start start) {
    public Task {
        parameters = List.copyOf(parameters);
        batched = Set.copyOf(batched);
    }

    /// A task whose weights all begin at random and learn.
    public Task(
            List<Parameter> parameters, IntFunction<Graph> lossGraph, Set<String> batched, boolean keyed, Feed feed) {
        this(parameters, lossGraph, batched, keyed, feed, Start.SEEDED);
    }

    public Task startingAt(Start other) {
        return new Task(parameters, lossGraph, batched, keyed, feed, other);
    }

    /// True if something in a graph draws random bits with the input `key`.
    static boolean draws(Graph graph) {
        return graph.values().stream()
                .flatMap(value -> value.op().operands().stream())
                .anyMatch(operand ->
                        operand.op() instanceof Op.Input input && input.name().equals("key"));
    }

    /// The parameters that learn.
    List<Parameter> trained() {
        return start.trained(parameters);
    }

    /// Gives a step its inputs: a pure function of the step.
    @FunctionalInterface
    public interface Feed {
        /// Fills every input but `key`; returns how many tokens (or examples) the step learns from.
        long fill(long step, Executor executor);
    }
}
