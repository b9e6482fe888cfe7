package ingot.compiler;

import ingot.ir.Tensor;
import ingot.ir.Type;
import java.util.List;
import java.util.SequencedMap;

/// A compiled graph: steps over planned memory.
///
/// `inputs` and `outputs` are what the caller gives and gets per run (whole batch); `weights` what the store must hold.
public record Program(
        String name,
        SequencedMap<String, Type> inputs,
        SequencedMap<String, Type> outputs,
        SequencedMap<String, Type> weights,
        List<Tensor> constants,
        List<Stage> stages,
        List<Step> steps,
        MemoryPlan memory) {
    public Program {
        constants = List.copyOf(constants);
        stages = List.copyOf(stages);
        steps = List.copyOf(steps);
    }

    /// A run of layers between two narrow places of the graph: the weights it reads. Stages of equal `signature` share
    /// their code.
    ///
    /// `owns`: the trained weights that no earlier stage reads. Their update happens at this stage's `Update` and their gradients are
    /// complete at its `Store`; a tied weight is read by two stages and owned by the first.
    public record Stage(int index, String name, String signature, List<String> weights, List<String> owns) {
        public Stage {
            weights = List.copyOf(weights);
            owns = List.copyOf(owns);
        }
    }

    /// Planned bytes: activations with reuse (and the most that is alive at once, which no plan can beat), gradients,
    /// weights, constants, inputs and outputs; and, on disk, activations that are spilled.
    public record MemoryPlan(
            long activationBytes,
            long liveBytes,
            long gradientBytes,
            long weightBytes,
            long constantBytes,
            long interfaceBytes,
            long spillBytes) {
        public long total() {
            return activationBytes + gradientBytes + weightBytes + constantBytes + interfaceBytes;
        }
    }
}
