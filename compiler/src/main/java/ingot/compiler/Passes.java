package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.IngotException;
import ingot.ir.Verifier;
import java.util.List;
import java.util.Set;

/// The pipeline between the stage cut and the kernels, and the driver that runs it over one piece.
final class Passes {
    private Passes() {}

    /// In this order: tiling looks for whole composites; what inlining reveals is simplified; folding needs simple
    /// operands.
    static List<Pass> pipeline(Compiler.Options options) {
        Set<String> kept = options.keptComposites();
        return List.of(
                new Pass("TileLogits", graph -> TileLogits.apply(graph, kept, options.logitBytes())),
                new Pass("InlineComposites", graph -> InlineComposites.apply(graph, kept)),
                new Pass("ExpandRandomBits", ExpandRandomBits::apply),
                new Pass("Simplify", Simplify::apply),
                new Pass("FoldConstants", FoldConstants::apply),
                new Pass("RemoveDead", RemoveDead::apply));
    }

    static Graph run(Graph graph, List<Pass> passes, Debug debug) {
        Graph next = graph;
        for (Pass pass : passes) {
            Graph before = next;
            next = debug.timed("  " + pass.name(), () -> pass.rewrite().apply(before));
            Graph after = next;
            check(pass, after);
            debug.print(
                    "passes",
                    pass.name() + (after.equals(before) ? " changed nothing" : ""),
                    () -> after.equals(before) ? "" : after.toString());
        }
        return next;
    }

    private static void check(Pass pass, Graph graph) {
        try {
            Verifier.check(graph);
        } catch (IngotException e) {
            throw new IllegalStateException(pass.name() + " made a wrong graph: " + e.getMessage() + "\n" + graph, e);
        }
    }
}
