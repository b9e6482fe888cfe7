package ingot.nn;

import ingot.ir.DType;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.IngotException;
import ingot.ir.Op;
import ingot.ir.Operands;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.ir.Value;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Low-rank adaptation (Hu et al. 2021): beside a frozen matrix, two thin ones that learn.
///
///     y = x·W + alpha/rank · (dropout(x)·Aᵀ)·Bᵀ        A [rank, in], B [out, rank]
///
/// B begins as zeros, so that the model begins as it is. A graph is rewritten after it was built: every product with a
/// matrix that a target names gets the second term. Names and first values are those of PEFT
/// (https://github.com/huggingface/peft): `base_model.model.` + module + `.lora_A.weight`.
public final class Lora {
    private static final String PREFIX = "base_model.model.";
    private static final String WEIGHT = ".weight";
    /// Streams of random bits that no layer of a model reaches.
    private static final int FIRST_STREAM = 1 << 16;

    private final Settings settings;
    private final SequencedMap<String, Site> sites;

    private Lora(Settings settings, SequencedMap<String, Site> sites) {
        this.settings = settings;
        this.sites = sites;
    }

    /// @param alpha the term is multiplied by alpha / rank
    /// @param dropout of what goes into the term, while learning
    /// @param targets modules by the end of their names, `query` or `self.query`, or by a pattern of whole names with
    /// `*` and `?`: `encoder.layer.1?.*.value`
    public record Settings(int rank, double alpha, double dropout, List<String> targets) {
        public Settings {
            targets = List.copyOf(targets);
            if (rank < 1 || !(alpha > 0) || !(dropout >= 0 && dropout < 1)) {
                throw new IngotException("lora: expected a rank from 1, an alpha above 0 and a dropout from 0 to below"
                        + " 1, got " + rank + ", " + alpha + " and " + dropout);
            }
            if (targets.isEmpty()) {
                throw new IngotException("lora: name at least one target, such as query and value");
            }
        }

        public double scale() {
            return alpha / rank;
        }

        private boolean takes(String module) {
            return targets.stream().anyMatch(target -> {
                if (target.indexOf('*') < 0 && target.indexOf('?') < 0) {
                    return module.equals(target) || module.endsWith("." + target);
                }
                return Pattern.matches(
                        target.chars()
                                .mapToObj(c -> c == '*' ? ".*" : c == '?' ? "." : Pattern.quote(Character.toString(c)))
                                .collect(Collectors.joining()),
                        module);
            });
        }
    }

    /// A matrix that is adapted: [out, in] as in PyTorch's Linear if `turned`, else [in, out].
    public record Site(String weight, int in, int out, boolean turned) {
        public String module() {
            return Lora.module(weight);
        }

        public String nameA() {
            return PREFIX + module() + ".lora_A" + WEIGHT;
        }

        public String nameB() {
            return PREFIX + module() + ".lora_B" + WEIGHT;
        }
    }

    private static String module(String weight) {
        return weight.endsWith(WEIGHT) ? weight.substring(0, weight.length() - WEIGHT.length()) : weight;
    }

    /// Finds the matrices of a graph that the targets name and a product reads.
    public static Lora of(Settings settings, Graph graph) {
        SequencedMap<String, Site> sites = new LinkedHashMap<>();
        Set<String> others = new LinkedHashSet<>();
        for (Value value : graph.values()) {
            Product product = Product.of(value);
            if (product != null) {
                Site site = product.site();
                if (settings.takes(site.module())) {
                    sites.putIfAbsent(site.weight(), site);
                } else {
                    others.add(site.module());
                }
            }
        }
        for (String target : settings.targets()) {
            Settings one = new Settings(settings.rank(), settings.alpha(), settings.dropout(), List.of(target));
            if (sites.values().stream().noneMatch(site -> one.takes(site.module()))) {
                throw new IngotException("lora: the target " + target + " names no matrix that a product reads; there"
                        + " are " + others.stream().limit(8).collect(Collectors.joining(", "))
                        + (others.size() > 8 ? ", …" : ""));
            }
        }
        return new Lora(settings, sites);
    }

    /// A product of something with a matrix among the weights, perhaps transposed before.
    ///
    /// @param contracted the axis of x that is summed over
    /// @param first the matrix is the left operand
    private record Product(Value x, int contracted, Site site, boolean first) {
        static @Nullable Product of(Value value) {
            if (!(value.op() instanceof Op.Dot dot)
                    || !dot.batchA().isEmpty()
                    || dot.contractA().size() != 1
                    || dot.start() != null
                    || value.dtype() != DType.F32) {
                return null;
            }
            Site right = site(dot.b(), dot.contractB().getFirst());
            if (right != null && !isWeight(dot.a())) {
                return new Product(dot.a(), dot.contractA().getFirst(), right, false);
            }
            Site left = site(dot.a(), dot.contractA().getFirst());
            return left == null || isWeight(dot.b())
                    ? null
                    : new Product(dot.b(), dot.contractB().getFirst(), left, true);
        }

        private static boolean isWeight(Value value) {
            return value.op() instanceof Op.Weight;
        }

        private static @Nullable Site site(Value matrix, int contracted) {
            if (matrix.shape().rank() != 2) {
                return null;
            }
            int in = matrix.shape().dim(contracted);
            int out = matrix.shape().dim(1 - contracted);
            return switch (matrix.op()) {
                case Op.Weight weight -> new Site(weight.name(), in, out, contracted == 1);
                case Op.Transpose turn
                when turn.x().op() instanceof Op.Weight weight
                        && turn.permutation().equals(List.of(1, 0)) ->
                    new Site(weight.name(), in, out, contracted == 0);
                default -> null;
            };
        }
    }

    public Settings settings() {
        return settings;
    }

    public List<Site> sites() {
        return List.copyOf(sites.values());
    }

    /// What learns: for each site A, uniform in ±1/√in (Kaiming with a = √5), and B, zeros.
    public List<Parameter> parameters() {
        List<Parameter> all = new ArrayList<>();
        for (Site site : sites.values()) {
            all.add(new Parameter(
                    site.nameA(),
                    Type.f32(settings.rank(), site.in()),
                    new Initializer.Uniform(1 / Math.sqrt(site.in())),
                    true));
            all.add(new Parameter(
                    site.nameB(), Type.f32(site.out(), settings.rank()), new Initializer.Constant(0), true));
        }
        return all;
    }

    /// A graph with the terms. Inputs, outputs and their names stay.
    public Graph adapt(Graph graph) {
        return adapt(graph, 0);
    }

    /// The same for learning, with dropout: axis 0 of what goes into a term carries `batch` rows. The graph has the
    /// input `key`, or gets it.
    public Graph adaptForLearning(Graph graph, int batch) {
        return adapt(graph, settings.dropout() > 0 ? batch : 0);
    }

    /// `batch` 0: no dropout.
    private Graph adapt(Graph graph, int batch) {
        GraphBuilder b = new GraphBuilder(graph.name());
        Map<Value, Value> mapped = new HashMap<>();
        Randomness random = batch == 0 ? null : Randomness.input(b).from(FIRST_STREAM);
        for (Value value : graph.values()) {
            b.enterScope(graph.scope(value));
            Value copy = b.add(Operands.replace(value.op(), x -> Objects.requireNonNull(mapped.get(x))));
            Product product = Product.of(value);
            if (product != null && sites.containsKey(product.site().weight())) {
                Value x = Objects.requireNonNull(mapped.get(product.x()));
                copy = b.add(copy, term(b, product, Activations.dropout(b, x, settings.dropout(), random, batch)));
            }
            mapped.put(value, copy);
        }
        graph.outputs().forEach((name, value) -> b.output(name, Objects.requireNonNull(mapped.get(value))));
        return b.build();
    }

    /// Adds a site's term to its matrix: W + alpha/rank · B·A, each element one chain over the rank.
    ///
    /// @param rank of A and B, which need not be that of other sites
    public static void merge(Site site, int rank, double scale, Tensor weight, Tensor a, Tensor b) {
        float factor = (float) scale;
        for (int out = 0; out < site.out(); out++) {
            for (int in = 0; in < site.in(); in++) {
                float sum = 0;
                for (int k = 0; k < rank; k++) {
                    sum = Math.fma(b.getFloat((long) out * rank + k), a.getFloat((long) k * site.in() + in), sum);
                }
                long at = site.turned() ? (long) out * site.in() + in : (long) in * site.out() + out;
                weight.setFloat(at, Math.fma(factor, sum, weight.getFloat(at)));
            }
        }
    }

    /// The name in an adapter of a weight that learns as a whole, such as that of a new head.
    public static String whole(String weight) {
        return PREFIX + weight;
    }

    private Value term(GraphBuilder b, Product product, Value x) {
        Site site = product.site();
        Value a = b.weight(site.nameA(), Type.f32(settings.rank(), site.in()));
        Value c = b.weight(site.nameB(), Type.f32(site.out(), settings.rank()));
        List<Integer> none = List.of();
        List<Integer> contracted = List.of(product.contracted());
        Value term;
        if (product.first()) { // W·x: B·(A·x), [out, free…]
            Value thin = b.dot(a, x, none, none, List.of(1), contracted);
            term = b.dot(c, thin, none, none, List.of(1), List.of(0));
        } else { // [free…, out]
            Value thin = b.dot(x, a, none, none, contracted, List.of(1));
            term = b.dot(thin, c, none, none, List.of(thin.shape().rank() - 1), List.of(1));
        }
        return b.multiply(term, settings.scale());
    }
}
