package ingot.compiler;

import ingot.ir.Tensor;
import ingot.ir.Type;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// A compiled graph: steps over planned memory.
///
/// `inputs` and `outputs` are what the caller gives and gets per run (whole batch); `weights` what the store must hold, where
/// a weight of the model may be several `tiles`.
public record Program(
        String name,
        SequencedMap<String, Type> inputs,
        SequencedMap<String, Type> outputs,
        SequencedMap<String, Type> weights,
        Map<String, Tile> tiles,
        List<Tensor> constants,
        List<Stage> stages,
        List<Step> steps,
        MemoryPlan memory) {
    public Program {
        tiles = Map.copyOf(tiles);
        constants = List.copyOf(constants);
        stages = List.copyOf(stages);
        steps = List.copyOf(steps);
    }

    /// The elements of a weight of the model that one of the program's weights is: rows that follow each other.
    public record Tile(String weight, long first, long elements) {}

    /// What a weight of the program is of the model's: the whole, or a tile of one that is too large.
    public Tile tile(String name) {
        Tile tile = tiles.get(name);
        if (tile != null) {
            return tile;
        }
        Type type = weights.get(name);
        if (type == null) {
            throw new IllegalArgumentException("program " + this.name + " has no weight " + name);
        }
        return new Tile(name, 0, type.shape().elements());
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
