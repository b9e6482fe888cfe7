package ingot.nn;

import ingot.ir.IngotException;

/// The sizes of a GPT-2 and what its training adds to them.
///
/// `inner` is the width of the feed-forward layer, 4·width in GPT-2. The dropouts are those after the embeddings, on the attention weights and
/// before each residual addition; `deviation` is the standard deviation of the first weights.
public record GptConfig(
        int vocabulary,
        int context,
        int width,
        int layers,
        int heads,
        int inner,
        double embeddingDropout,
        double attentionDropout,
        double residualDropout,
        double epsilon,
        Activation activation,
        double deviation) {
    public GptConfig {
        if (vocabulary < 1 || context < 1 || width < 1 || layers < 0 || heads < 1 || inner < 1) {
            throw new IngotException("gpt: sizes must be positive, got vocabulary " + vocabulary + ", context "
                    + context + ", width " + width + ", layers " + layers + ", heads " + heads + ", inner " + inner);
        }
        if (width % heads != 0) {
            throw new IngotException(
                    "gpt: width " + width + " does not divide into " + heads + " heads; choose a multiple of " + heads);
        }
        for (double rate : new double[] {embeddingDropout, attentionDropout, residualDropout}) {
            if (!(rate >= 0 && rate < 1)) {
                throw new IngotException("gpt: a dropout rate is in [0, 1), got " + rate);
            }
        }
        if (!(epsilon > 0) || !(deviation >= 0)) {
            throw new IngotException(
                    "gpt: epsilon must be positive and deviation not negative, got " + epsilon + " and " + deviation);
        }
    }

    /// GPT-2 proportions without dropout.
    public static GptConfig of(int vocabulary, int context, int width, int layers, int heads) {
        return new GptConfig(
                vocabulary, context, width, layers, heads, 4 * width, 0, 0, 0, 1e-5, Activation.GELU_TANH, 0.02);
    }

    /// 4 layers of width 256 over 2,048 byte pairs: 3.7 million parameters.
    public static GptConfig tiny() {
        return of(2048, 256, 256, 4, 4);
    }

    /// GPT-2: 124 million parameters.
    public static GptConfig small() {
        return of(50257, 1024, 768, 12, 12);
    }

    /// GPT-2 medium: 355 million parameters.
    public static GptConfig medium() {
        return of(50257, 1024, 1024, 24, 16);
    }

    /// GPT-2 large: 774 million parameters.
    public static GptConfig large() {
        return of(50257, 1024, 1280, 36, 20);
    }

    /// GPT-2 XL: 1.6 billion parameters.
    public static GptConfig xl() {
        return of(50257, 1024, 1600, 48, 25);
    }

    public GptConfig withVocabulary(int size) {
        return new GptConfig(
                size,
                context,
                width,
                layers,
                heads,
                inner,
                embeddingDropout,
                attentionDropout,
                residualDropout,
                epsilon,
                activation,
                deviation);
    }

    public GptConfig withContext(int length) {
        return new GptConfig(
                vocabulary,
                length,
                width,
                layers,
                heads,
                inner,
                embeddingDropout,
                attentionDropout,
                residualDropout,
                epsilon,
                activation,
                deviation);
    }

    /// The same rate in all three places.
    public GptConfig withDropout(double rate) {
        return new GptConfig(
                vocabulary, context, width, layers, heads, inner, rate, rate, rate, epsilon, activation, deviation);
    }

    public int headWidth() {
        return width / heads;
    }
}
