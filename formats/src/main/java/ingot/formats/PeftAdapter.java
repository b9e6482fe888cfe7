package ingot.formats;

import ingot.ir.DType;
import ingot.ir.IngotException;
import ingot.ir.Shape;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.nn.Lora;
import ingot.store.Durable;
import ingot.store.Safetensors;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/// A low-rank adapter in the layout of PEFT: `adapter_config.json` and `adapter_model.safetensors`.
///
/// Names are those of [Lora]: `base_model.model.` + module + `.lora_A.weight` and `.lora_B.weight`; weights that
/// learned as a whole are there without `lora_`. Format: https://huggingface.co/docs/peft/developer_guides/checkpoint.
public final class PeftAdapter implements AutoCloseable {
    static final String CONFIG = "adapter_config.json";
    private static final String TENSORS = "adapter_model.safetensors";
    private static final String PREFIX = "base_model.model.";
    private static final String A = ".lora_A.weight";
    private static final String B = ".lora_B.weight";

    private final Path folder;
    private final ModelConfig config;
    private final SafetensorsWeights tensors;

    private PeftAdapter(Path folder, ModelConfig config, SafetensorsWeights tensors) {
        this.folder = folder;
        this.config = config;
        this.tensors = tensors;
    }

    /// Writes an adapter.
    ///
    /// @param base where its model comes from, for people
    /// @param whole weights that learned as a whole, by their names in the model
    /// @param contents of these, and of A and B under the names of `lora`
    public static void save(
            Path folder, Lora lora, String base, SequencedMap<String, Type> whole, Safetensors.Contents contents) {
        ObjectNode json = JsonMapper.shared().createObjectNode();
        json.put("peft_type", "LORA");
        json.putNull("task_type");
        json.put("base_model_name_or_path", base);
        json.put("r", lora.settings().rank());
        json.set("lora_alpha", number(lora.settings().alpha()));
        json.put("lora_dropout", lora.settings().dropout());
        json.put("bias", "none");
        json.put("fan_in_fan_out", lora.sites().stream().noneMatch(Lora.Site::turned));
        json.put("init_lora_weights", true);
        json.put("inference_mode", true);
        ArrayNode targets = json.putArray("target_modules");
        targets(lora).forEach(targets::add);
        if (whole.isEmpty()) {
            json.putNull("modules_to_save");
        } else {
            ArrayNode modules = json.putArray("modules_to_save");
            modules(whole.keySet()).forEach(modules::add);
        }
        SequencedMap<String, Type> types = new LinkedHashMap<>();
        lora.parameters().forEach(parameter -> types.put(parameter.name(), parameter.type()));
        Map<String, String> plain = new HashMap<>();
        whole.forEach((name, type) -> {
            types.put(Lora.whole(name), type);
            plain.put(Lora.whole(name), name);
        });
        try {
            Files.createDirectories(folder);
            Safetensors.write(
                    folder.resolve(TENSORS),
                    Map.of("format", "pt"),
                    types,
                    (name, reader) -> contents.read(plain.getOrDefault(name, name), reader));
            Durable.write(
                    folder.resolve(CONFIG),
                    JsonMapper.shared().writerWithDefaultPrettyPrinter().writeValueAsString(json));
        } catch (IOException e) {
            throw new IngotException("adapter: cannot write to " + folder + ": " + e.getMessage(), e);
        }
    }

    private static tools.jackson.databind.node.NumericNode number(double value) {
        return value == Math.rint(value)
                ? tools.jackson.databind.node.IntNode.valueOf((int) value)
                : tools.jackson.databind.node.DoubleNode.valueOf(value);
    }

    /// The targets as they were given, if PEFT reads them so: ends of names. Else every module.
    private static List<String> targets(Lora lora) {
        boolean plain = lora.settings().targets().stream()
                .noneMatch(target -> target.indexOf('*') >= 0 || target.indexOf('?') >= 0);
        return plain
                ? lora.settings().targets()
                : lora.sites().stream().map(Lora.Site::module).toList();
    }

    private static Set<String> modules(Set<String> weights) {
        Set<String> modules = new LinkedHashSet<>();
        weights.forEach(name -> modules.add(name.replaceFirst("\\.(weight|bias)$", "")));
        return modules;
    }

    public static PeftAdapter open(Path folder) {
        ModelConfig config = ModelConfig.read(folder.resolve(CONFIG));
        if (!config.text("peft_type", "").equalsIgnoreCase("LORA")) {
            throw config.unsupported("peft_type", "LORA");
        }
        for (String other : List.of("use_dora", "use_rslora")) {
            if (config.flag(other, false)) {
                throw config.unsupported(other, "false");
            }
        }
        PeftAdapter adapter = new PeftAdapter(folder, config, new SafetensorsWeights(folder.resolve(TENSORS)));
        try {
            adapter.check();
            return adapter;
        } catch (RuntimeException e) {
            adapter.close();
            throw e;
        }
    }

    private void check() {
        config.size("r");
        double alpha = config.number("lora_alpha");
        if (!(alpha > 0)) {
            throw config.wrong("lora_alpha", "a number above 0");
        }
        List<String> wrong = new ArrayList<>();
        SequencedMap<String, Type> types = tensors.types();
        types.forEach((name, type) -> {
            if (!name.startsWith(PREFIX)) {
                wrong.add(name);
            } else if (name.endsWith(A) || name.endsWith(B)) {
                String a = name.substring(0, name.length() - A.length()) + A;
                String b = name.substring(0, name.length() - B.length()) + B;
                Type left = types.get(a);
                Type right = types.get(b);
                boolean fits = left != null
                        && right != null
                        && left.dtype() == DType.F32
                        && right.dtype() == DType.F32
                        && left.shape().rank() == 2
                        && right.shape().rank() == 2
                        && left.shape().dim(0) == right.shape().dim(1);
                if (!fits) {
                    wrong.add(name + " " + type);
                }
            } else if (name.contains(".lora_")) {
                wrong.add(name); // embeddings, magnitudes
            }
        });
        if (!wrong.isEmpty()) {
            throw new IngotException(folder.resolve(TENSORS) + ": expected pairs " + PREFIX
                    + "….lora_A.weight [rank, in]" + " and ….lora_B.weight [out, rank], got " + Listing.of(wrong));
        }
    }

    /// What `base_model_name_or_path` says the adapter is for.
    public String base() {
        return config.text("base_model_name_or_path", "");
    }

    /// As it was made; targets are those of the file, or none if it has a pattern.
    public Lora.Settings settings() {
        List<String> targets =
                config.json().path("target_modules").isArray() ? config.texts("target_modules") : List.of("*");
        return new Lora.Settings(
                config.size("r"), config.number("lora_alpha"), config.number("lora_dropout", 0), targets);
    }

    /// A, B and weights that learned as a whole, under the names of the file.
    public WeightSource tensors() {
        return tensors;
    }

    /// The weights of a model with this adapter in them. Closing it closes both.
    public WeightSource merged(WeightSource base) {
        Map<String, Type> types = base.types();
        Map<String, Lora.Site> sites = new HashMap<>();
        Map<String, String> whole = new HashMap<>();
        List<String> homeless = new ArrayList<>();
        tensors.types().forEach((name, type) -> {
            String plain = name.substring(PREFIX.length());
            if (name.endsWith(B)) {
                return;
            }
            boolean low = name.endsWith(A);
            String module = low ? plain.substring(0, plain.length() - A.length()) : plain;
            String weight = low ? owner(module, types) : types.containsKey(plain) ? plain : null;
            Lora.Site site = low && weight != null ? site(name, weight, types) : null;
            if (site != null) {
                sites.put(weight, site);
            } else if (!low && weight != null && type.equals(types.get(weight))) {
                whole.put(weight, name);
            } else {
                homeless.add(name + " " + type);
            }
        });
        if (!homeless.isEmpty()) {
            throw new IngotException(folder + ": the adapter does not fit the model: it has no weights for "
                    + Listing.of(homeless) + "; is it the adapter of another one?");
        }
        return new Merged(base, sites, whole);
    }

    private static @Nullable String owner(String module, Map<String, Type> types) {
        for (String name : List.of(module + ".weight", module)) {
            if (types.containsKey(name)) {
                return name;
            }
        }
        return null;
    }

    /// The layout follows from the sizes; a square matrix is as `fan_in_fan_out` says.
    private Lora.@Nullable Site site(String nameA, String weight, Map<String, Type> types) {
        Map<String, Type> own = tensors.types();
        int in = java.util.Objects.requireNonNull(own.get(nameA)).shape().dim(1);
        String nameB = nameA.substring(0, nameA.length() - A.length()) + B;
        int out = java.util.Objects.requireNonNull(own.get(nameB)).shape().dim(0);
        Type type = java.util.Objects.requireNonNull(types.get(weight));
        boolean turned = type.shape().equals(Shape.of(out, in));
        boolean straight = type.shape().equals(Shape.of(in, out));
        if (type.dtype() != DType.F32 || !(turned || straight)) {
            return null;
        }
        return new Lora.Site(weight, in, out, turned && !(straight && config.flag("fan_in_fan_out", false)));
    }

    private final class Merged implements WeightSource {
        private final WeightSource base;
        private final Map<String, Lora.Site> sites;
        private final Map<String, String> whole;

        Merged(WeightSource base, Map<String, Lora.Site> sites, Map<String, String> whole) {
            this.base = base;
            this.sites = sites;
            this.whole = whole;
        }

        @Override
        public SequencedMap<String, Type> types() {
            return base.types();
        }

        @Override
        public void read(String name, MemorySegment target) {
            String own = whole.get(name);
            if (own != null) {
                tensors.read(own, target);
                return;
            }
            base.read(name, target);
            Lora.Site site = sites.get(name);
            if (site != null) {
                Tensor a = read(site.nameA());
                Tensor b = read(site.nameB());
                int rank = a.shape().dim(0);
                Tensor weight = Tensor.over(
                        java.util.Objects.requireNonNull(base.types().get(name)), target);
                Lora.merge(site, rank, config.number("lora_alpha") / rank, weight, a, b);
            }
        }

        private Tensor read(String name) {
            Tensor tensor = Tensor.zeros(
                    java.util.Objects.requireNonNull(tensors.types().get(name)));
            tensors.read(name, tensor.data());
            return tensor;
        }

        @Override
        public void close() {
            base.close();
            PeftAdapter.this.close();
        }
    }

    @Override
    public void close() {
        tensors.close();
    }
}
