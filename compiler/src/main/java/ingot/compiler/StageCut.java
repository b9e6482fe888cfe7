package ingot.compiler;

import ingot.ir.Graph;
import ingot.ir.Op;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Cuts the forward values into stages where few activations cross.
///
///     ids ─ wte ─┊─ x ─ ln ─ qkv ─ attention ─ proj ─ + ─┊─ ln ─ fc ─ gelu ─ proj ─ + ─┊─ … ─┊─ ln ─ head ─ loss
///                ┊  └──────────── residual ──────────┘   ┊  └─────── residual ─────┘   ┊     ┊
///           embedding           h.0.attn                          h.0.mlp                    head
///
/// Anchors are the ops that apply a matrix weight to the batch; every stage has at least one. Between two neighbouring
/// anchors the best place is the one with the fewest crossing activations, then the fewest bytes. The place becomes a
/// cut if a single activation crosses it, or no more than at both neighbouring places: that is the residual stream, not
/// the inside of a block. Around the tiles of a large weight every place between anchors is a cut. Where several places
/// are equally good the one is taken that makes stages alike, so that they share code.
final class StageCut {
    /// @param of the stage of each forward value; −1 for inputs and for what does not depend on the batch
    /// @param scopes where the first anchor of each stage was built, possibly empty
    record Stages(int[] of, List<String> scopes) {}

    private final List<Value> order = new ArrayList<>(); // what depends on the batch, without inputs
    private final boolean[] weighted; // depends on a weight, by id
    private final boolean[] placed;
    private final Set<String> tiles;
    private int[] crossing = {};
    private long[] bytes = {};

    private StageCut(Graph graph, int forward, List<BatchFlow.Flow> flows, Set<String> tiles) {
        this.tiles = tiles;
        weighted = new boolean[forward];
        placed = new boolean[forward];
        for (Value value : graph.values().subList(0, forward)) {
            weighted[value.id()] = value.op() instanceof Op.Weight
                    || value.op().operands().stream().anyMatch(v -> weighted[v.id()]);
            BatchFlow.Kind kind = flows.get(value.id()).kind();
            placed[value.id()] = kind.compareTo(BatchFlow.Kind.MICRO) >= 0 && !(value.op() instanceof Op.Input);
            if (placed[value.id()]) {
                order.add(value);
            }
        }
    }

    /// Cuts the first `forward` values; every one of the weights `tiles` has a stage of its own.
    static Stages of(Graph graph, int forward, List<BatchFlow.Flow> flows, Set<String> tiles) {
        StageCut cut = new StageCut(graph, forward, flows, tiles);
        cut.measure();
        List<Integer> cuts = cut.choose();
        int[] stages = new int[forward];
        java.util.Arrays.fill(stages, -1);
        List<String> scopes = new ArrayList<>(java.util.Collections.nCopies(cuts.size() + 1, ""));
        int stage = 0;
        for (int i = 0; i < cut.order.size(); i++) {
            if (stage < cuts.size() && cuts.get(stage) == i) {
                stage++;
            }
            Value value = cut.order.get(i);
            stages[value.id()] = stage;
            if (scopes.get(stage).isEmpty() && cut.anchor(value)) {
                scopes.set(stage, graph.scope(value));
            }
        }
        return new Stages(stages, scopes);
    }

    /// Counts, for the boundary before each place in the order, the weighted activations that cross it.
    private void measure() {
        int n = order.size();
        Map<Value, Integer> place = new HashMap<>();
        int[] last = new int[n];
        for (int i = 0; i < n; i++) {
            Value value = order.get(i);
            place.put(value, i);
            last[i] = i;
            for (Value operand : value.op().operands()) {
                Integer at = place.get(operand);
                if (at != null) {
                    last[at] = i;
                }
            }
        }
        int[] opens = new int[n + 1];
        long[] openBytes = new long[n + 1];
        for (int i = 0; i < n; i++) {
            if (weighted[order.get(i).id()] && last[i] > i) {
                opens[i + 1]++;
                opens[Math.min(n, last[i] + 1)]--;
                openBytes[i + 1] += order.get(i).type().bytes();
                openBytes[Math.min(n, last[i] + 1)] -= order.get(i).type().bytes();
            }
        }
        crossing = new int[n + 1];
        bytes = new long[n + 1];
        for (int i = 1; i < n; i++) {
            crossing[i] = crossing[i - 1] + opens[i];
            bytes[i] = bytes[i - 1] + openBytes[i];
        }
    }

    private List<Integer> choose() {
        List<List<Integer>> gaps = new ArrayList<>(); // per pair of neighbouring anchors: the equally good places
        List<Boolean> forced = new ArrayList<>();
        int previous = -1;
        for (int i = 0; i < order.size(); i++) {
            if (anchor(order.get(i))) {
                if (previous >= 0) {
                    gaps.add(best(previous + 1, i));
                    forced.add(readsTile(order.get(previous)) || readsTile(order.get(i)));
                }
                previous = i;
            }
        }
        List<List<Integer>> kept = new ArrayList<>();
        for (int i = 0; i < gaps.size(); i++) {
            if (gaps.get(i).isEmpty()) {
                continue;
            }
            int here = crossing[gaps.get(i).getFirst()];
            int before = count(gaps, i - 1);
            int after = count(gaps, i + 1);
            if (forced.get(i) || here <= 1 || here <= Math.min(before, after)) {
                kept.add(gaps.get(i));
            }
        }
        return alike(kept);
    }

    private boolean readsTile(Value value) {
        return value.op().operands().stream()
                .anyMatch(operand -> operand.op() instanceof Op.Weight weight && tiles.contains(weight.name()));
    }

    private int count(List<List<Integer>> gaps, int i) {
        return i < 0 || i >= gaps.size() || gaps.get(i).isEmpty()
                ? Integer.MAX_VALUE
                : crossing[gaps.get(i).getFirst()];
    }

    /// An op that meets both the batch and a weight of at least two axes.
    private boolean anchor(Value value) {
        boolean matrix = false;
        boolean batch = false;
        for (Value operand : value.op().operands()) {
            boolean micro = placed[operand.id()] || operand.op() instanceof Op.Input;
            batch |= micro;
            matrix |= !micro && weighted[operand.id()] && operand.shape().rank() >= 2;
        }
        boolean pointwise = switch (value.op()) {
            case Op.Binary _, Op.Fma _, Op.Select _, Op.Compare _, Op.Concatenate _, Op.Result _ -> true;
            case Op _ -> false;
        };
        return batch && matrix && !pointwise;
    }

    /// The boundaries in (after, before] with the fewest crossing activations, then bytes.
    private List<Integer> best(int after, int before) {
        List<Integer> places = new ArrayList<>();
        for (int i = after; i <= before; i++) {
            if (order.get(i).op() instanceof Op.Result) {
                continue; // stays with its composite
            }
            if (!places.isEmpty()) {
                int known = places.getFirst();
                int better = crossing[i] != crossing[known]
                        ? Integer.compare(crossing[i], crossing[known])
                        : Long.compare(bytes[i], bytes[known]);
                if (better > 0) {
                    continue;
                }
                if (better < 0) {
                    places.clear();
                }
            }
            places.add(i);
        }
        return places;
    }

    /// Of each gap one place: the latest, so that bias and activation stay with their product, unless another one makes
    /// a neighbouring stage equal to some other stage.
    private List<Integer> alike(List<List<Integer>> gaps) {
        List<Integer> cuts = new ArrayList<>(gaps.stream().map(List::getLast).toList());
        for (int gap = 0; gap < gaps.size(); gap++) {
            if (gaps.get(gap).size() > 1) {
                Map<Integer, Integer> shapes = new HashMap<>();
                for (int stage = 0; stage <= cuts.size(); stage++) {
                    if (stage != gap && stage != gap + 1) {
                        shapes.merge(hash(start(cuts, stage), end(cuts, stage)), 1, Integer::sum);
                    }
                }
                int best = -1;
                for (int place : gaps.get(gap)) {
                    int score = shapes.getOrDefault(hash(start(cuts, gap), place), 0)
                            + shapes.getOrDefault(hash(place, end(cuts, gap + 1)), 0);
                    if (score >= best) {
                        best = score;
                        cuts.set(gap, place);
                    }
                }
            }
        }
        return cuts;
    }

    private static int start(List<Integer> cuts, int stage) {
        return stage == 0 ? 0 : cuts.get(stage - 1);
    }

    private int end(List<Integer> cuts, int stage) {
        return stage == cuts.size() ? order.size() : cuts.get(stage);
    }

    /// Equal for stages of equal ops in equal order; a score, not a proof.
    private int hash(int from, int to) {
        int hash = to - from;
        for (int i = from; i < to; i++) {
            Value value = order.get(i);
            hash = 31 * hash + value.op().getClass().getName().hashCode();
            hash = 31 * hash + value.type().hashCode();
            for (Value operand : value.op().operands()) {
                hash = 31 * hash + operand.type().hashCode();
            }
        }
        return hash;
    }

    /// The name of a stage: its scope, or what the names of its matrix weights have in common.
    static String name(String scope, List<String> weights, int index) {
        if (!scope.isEmpty()) {
            return scope;
        }
        if (weights.isEmpty()) {
            return "stage " + index;
        }
        String[] common = weights.getFirst().split("\\.");
        int length = Math.max(1, common.length - 1);
        for (String weight : weights) {
            String[] parts = weight.split("\\.");
            int same = 0;
            while (same < length && same < parts.length && parts[same].equals(common[same])) {
                same++;
            }
            length = same;
        }
        return length == 0
                ? weights.getFirst()
                : String.join(".", List.of(common).subList(0, length));
    }
}
