package ingot.runtime;

import ingot.compiler.Buffer;
import ingot.compiler.Program;
import ingot.compiler.Step;
import ingot.ir.Type;
import ingot.store.WeightStore.Key;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// One stay of a stage in memory: the steps between its `Load` and its `Free`, and what they touch of the store.
///
/// A training step visits every stage twice, forward and backward, except the last one, which does both at once.
///
/// @param updates the pending update of the stage is applied when this visit begins
/// @param touches every weight and gradient that a step of this visit reads or writes, and the weights that it updates
public record Visit(int index, Program.Stage stage, boolean updates, List<Touch> touches) {
    public Visit {
        touches = List.copyOf(touches);
    }

    /// An array of the store that a visit needs.
    ///
    /// @param bytes its size
    /// @param written a kernel of this visit writes it
    public record Touch(Key key, long bytes, boolean written) {}

    /// The visits of a program in their order.
    public static List<Visit> of(Program program) {
        List<Visit> visits = new ArrayList<>();
        List<Step> steps = program.steps();
        for (int i = 0; i < steps.size(); i++) {
            if (steps.get(i) instanceof Step.Load(int stage)) {
                visits.add(visit(program, visits.size(), i, stage));
            }
        }
        return List.copyOf(visits);
    }

    private static Visit visit(Program program, int index, int load, int stage) {
        Program.Stage loaded = program.stages().get(stage);
        Map<Key, Boolean> touched = new LinkedHashMap<>();
        boolean updates = false;
        for (int i = load + 1; i < program.steps().size(); i++) {
            switch (program.steps().get(i)) {
                case Step.Free(int freed)
                when freed == stage -> {
                    return new Visit(index, loaded, updates, touches(program, touched));
                }
                case Step.Update _ -> {
                    updates = true;
                    loaded.owns().forEach(weight -> touched.putIfAbsent(Key.weight(weight), false));
                }
                case Step.Run run -> {
                    int reads = run.kernel().reads().size();
                    for (int o = 0; o < run.operands().size(); o++) {
                        touch(touched, run.operands().get(o).buffer(), o >= reads);
                    }
                }
                case Step.Reduce reduce -> {
                    touch(touched, reduce.left().buffer(), true);
                    touch(touched, reduce.right().buffer(), false);
                }
                case Step.Load _,
                        Step.Store _,
                        Step.Free _,
                        Step.Commit _,
                        Step.Spill _,
                        Step.Fetch _,
                        Step.Await _ -> {}
            }
        }
        throw new IllegalStateException(program.name() + ": stage " + stage + " is loaded and never freed");
    }

    private static void touch(Map<Key, Boolean> touched, Buffer buffer, boolean written) {
        switch (buffer) {
            case Buffer.Weight weight -> touched.merge(Key.weight(weight.name()), written, Boolean::logicalOr);
            case Buffer.Gradient gradient ->
                touched.merge(Key.gradient(gradient.weight()), written, Boolean::logicalOr);
            case Buffer.Input _, Buffer.Output _, Buffer.Activation _, Buffer.Constant _ -> {}
        }
    }

    private static List<Touch> touches(Program program, Map<Key, Boolean> touched) {
        List<Touch> touches = new ArrayList<>();
        touched.forEach((key, written) -> {
            Type type = program.weights().get(key.tensor());
            if (type != null) {
                touches.add(new Touch(key, type.bytes(), written));
            }
        });
        return touches;
    }

    /// The weights whose pending update is applied at the beginning of this visit.
    Set<String> updated() {
        return updates ? Set.copyOf(stage.owns()) : Set.of();
    }
}
