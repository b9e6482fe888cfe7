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
    public record Stage(int index, String name, String signature, List<String> weights) {
        public Stage {
            weights = List.copyOf(weights);
        }
    }

    /// Planned bytes: activations with reuse, gradients, constants, inputs and outputs.
    public record MemoryPlan(
            long activationBytes, long gradientBytes, long weightBytes, long constantBytes, long interfaceBytes) {
        public long total() {
            return activationBytes + gradientBytes + weightBytes + constantBytes + interfaceBytes;
        }
    }
}
