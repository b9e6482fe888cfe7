package ingot.train;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import ingot.ir.Tensor;
import ingot.ir.Type;
import ingot.nn.Gpt;
import ingot.nn.GptConfig;
import ingot.nn.Parameter;
import ingot.store.BaseWeights;
import ingot.store.Safetensors;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StartTest {
    private static final List<Parameter> PARAMETERS =
            Gpt.of(GptConfig.of(24, 6, 16, 2, 2)).parameters();
    private static final List<String> NAMES =
            PARAMETERS.stream().map(Parameter::name).toList();

    @TempDir
    Path folder;

    @Test
    void patternsChooseInTheirOrder() {
        assertThat(Start.frozen(NAMES, List.of())).isEmpty();
        assertThat(Start.frozen(NAMES, List.of("wte.weight", "transformer.wpe.*")))
                .containsExactlyInAnyOrder("transformer.wte.weight", "transformer.wpe.weight");
        assertThat(Start.frozen(NAMES, List.of("h.*", "!h.1.*"))).hasSize(12).allMatch(name -> name.contains("h.0."));
        assertThat(Start.frozen(NAMES, List.of("h.?.ln_?.bias"))).hasSize(4);
        assertThat(Start.frozen(NAMES, List.of("!ln_f.*", "*"))).hasSize(NAMES.size());
    }

    @Test
    void refusesAPatternThatFitsNothing() {
        assertThatThrownBy(() -> Start.of(PARAMETERS, null, List.of("h.*", "wte.wieght")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("train.freeze: the pattern wte.wieght fits none of the 28 weights")
                .hasMessageContaining("did you mean wte.weight?");
    }

    @Test
    void refusesToFreezeAll() {
        assertThatThrownBy(() -> Start.of(PARAMETERS, null, List.of("*")))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("freezes all 28 weights, so there is nothing to train");
    }

    @Test
    void refusesABaseOfAnotherModel() {
        Path file = folder.resolve("base.safetensors");
        SequencedMap<String, Tensor> tensors = new LinkedHashMap<>();
        PARAMETERS.forEach(parameter -> tensors.put(parameter.name(), Tensor.zeros(parameter.type())));
        tensors.put("transformer.wpe.weight", Tensor.zeros(Type.f32(8, 16)));
        Safetensors.write(file, Map.of(), tensors);
        try (BaseWeights base = BaseWeights.open(file)) {
            assertThatThrownBy(() -> Start.of(PARAMETERS, base, List.of()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("transformer.wpe.weight as f32[8, 16], expected f32[6, 16]");
        }
        tensors.remove("transformer.wpe.weight");
        Safetensors.write(file, Map.of(), tensors);
        try (BaseWeights base = BaseWeights.open(file)) {
            assertThatThrownBy(() -> Start.of(PARAMETERS, base, List.of()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageContaining("has no tensor transformer.wpe.weight");
        }
    }
}
