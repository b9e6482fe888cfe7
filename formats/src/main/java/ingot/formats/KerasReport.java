package ingot.formats;

import ingot.ir.IngotException;
import ingot.ir.Type;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SequencedMap;
import java.util.TreeMap;

/// What a file of Keras holds: inputs, layers by class, weights, and all that is not supported.
public final class KerasReport {
    private KerasReport() {}

    public static ModelReport of(Path path) {
        try (KerasModel model = KerasModel.open(path)) {
            String format = model.format() + ", " + model.layer().kind() + " model "
                    + model.layer().name();
            List<String> facts = new ArrayList<>();
            SequencedMap<String, Type> tensors = model.stored();
            try {
                facts.addAll(facts(model));
                KerasImport imported = KerasImport.of(model, KerasImport.trial(model));
                tensors = imported.types();
                imported.graph()
                        .inputs()
                        .forEach(input -> facts.add("input " + KerasImport.name(input) + " " + input.type()));
                imported.graph().outputs().forEach((name, value) -> facts.add("output " + name + " " + value.type()));
                SequencedMap<String, Integer> open = KerasImport.open(model);
                open.remove("batch");
                if (!open.isEmpty()) {
                    facts.add("open sizes " + Listing.of(new ArrayList<>(open.keySet())) + ", shown as "
                            + KerasImport.TRIAL);
                }
                return new ModelReport(format, facts, tensors, List.of(), null);
            } catch (IngotException e) {
                return new ModelReport(format, facts, tensors, List.of(), e.getMessage());
            }
        }
    }

    private static List<String> facts(KerasModel model) {
        TreeMap<String, Integer> kinds = new TreeMap<>();
        for (KerasLayer layer : KerasGraph.all(model.layer())) {
            kinds.merge(layer.kind(), 1, Integer::sum);
        }
        List<String> counts = new ArrayList<>();
        kinds.forEach((kind, count) -> counts.add(count == 1 ? kind : kind + " × " + count));
        return List.of("layers " + String.join(", ", counts));
    }
}
