package ingot.nn;

import ingot.ir.IngotException;

/// The sizes of a model of the Llama family.
///
/// `keyHeads` divides `heads`; `inner` is the width of the feed-forward layer (of one expert, if there are several);
/// `tied`: the token table is the head; `deviation` is the standard deviation of the first weights.
public record LlamaConfig(
        int vocabulary,
        int context,
        int width,
        int layers,
        int heads,
        int keyHeads,
        int headWidth,
        int inner,
        double epsilon,
        Rope rope,
        boolean tied,
        Variant variant,
        double deviation) {
    public LlamaConfig {
        if (vocabulary < 1 || context < 1 || width < 1 || layers < 0 || heads < 1 || headWidth < 1 || inner < 1) {
            throw new IngotException("llama: sizes must be positive, got vocabulary " + vocabulary + ", context "
                    + context + ", width " + width + ", layers " + layers + ", heads " + heads + " of " + headWidth
                    + ", inner " + inner);
        }
        if (keyHeads < 1 || heads % keyHeads != 0) {
            throw new IngotException("llama: " + heads + " heads do not divide into groups over " + keyHeads
                    + " key heads; choose a divisor");
        }
        if (rope.width() > headWidth) {
            throw new IngotException("llama: " + rope.width() + " channels are to turn, a head has " + headWidth);
        }
        if (!(epsilon > 0) || !(deviation >= 0)) {
            throw new IngotException(
                    "llama: epsilon must be positive and deviation not negative, got " + epsilon + " and " + deviation);
        }
    }

    /// What the members of the family do differently.
    ///
    /// @param queryBias queries, keys and values have biases (Qwen2)
    /// @param outputBias so has the projection after attention
    /// @param mlpBias so have the feed-forward layers
    /// @param headNorms queries and keys are normalised per head (Qwen3)
    /// @param window keys a query sees, itself included, in layers from `windowFrom` on; 0: all (Mistral)
    /// @param gemma norms scale by 1 + weight and embeddings by √width
    /// @param experts feed-forward layers to choose `chosen` from for each token; 0: one for all (Mixtral)
    public record Variant(
            boolean queryBias,
            boolean outputBias,
            boolean mlpBias,
            boolean headNorms,
            int window,
            int windowFrom,
            Activation activation,
            boolean gemma,
            int experts,
            int chosen) {
        public static final Variant LLAMA = new Variant(false, false, false, false, 0, 0, Activation.SILU, false, 0, 0);

        public Variant {
            if (window < 0 || windowFrom < 0) {
                throw new IngotException(
                        "llama: a window is not negative, got " + window + " from layer " + windowFrom);
            }
            if (experts < 0 || (experts > 0 && (chosen < 1 || chosen > experts))) {
                throw new IngotException(
                        "llama: each token chooses 1 to all of the " + experts + " experts, got " + chosen);
            }
        }

        public Variant withBiases(boolean query, boolean output, boolean mlp) {
            return new Variant(query, output, mlp, headNorms, window, windowFrom, activation, gemma, experts, chosen);
        }

        public Variant withHeadNorms() {
            return new Variant(
                    queryBias, outputBias, mlpBias, true, window, windowFrom, activation, gemma, experts, chosen);
        }

        public Variant withWindow(int keys, int fromLayer) {
            return new Variant(
                    queryBias, outputBias, mlpBias, headNorms, keys, fromLayer, activation, gemma, experts, chosen);
        }

        public Variant withActivation(Activation other) {
            return new Variant(
                    queryBias, outputBias, mlpBias, headNorms, window, windowFrom, other, gemma, experts, chosen);
        }

        public Variant withGemma() {
            return new Variant(
                    queryBias, outputBias, mlpBias, headNorms, window, windowFrom, activation, true, experts, chosen);
        }

        public Variant withExperts(int count, int perToken) {
            return new Variant(
                    queryBias, outputBias, mlpBias, headNorms, window, windowFrom, activation, gemma, count, perToken);
        }
    }
}
