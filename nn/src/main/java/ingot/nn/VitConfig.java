package ingot.nn;

import ingot.ir.IngotException;

/// The sizes of a vision transformer.
///
/// @param labels classes of the head; 0: no head, and hidden states only
/// @param pooler the first token passes a layer with tanh (models without a head)
/// @param deviation standard deviation of the first weights
public record VitConfig(
        int imageSize,
        int patch,
        int channels,
        int width,
        int layers,
        int heads,
        int inner,
        int labels,
        double epsilon,
        Activation activation,
        boolean bias,
        boolean pooler,
        double hiddenDropout,
        double attentionDropout,
        double deviation) {
    public VitConfig {
        if (imageSize < 1 || patch < 1 || channels < 1 || width < 1 || layers < 0 || heads < 1 || inner < 1) {
            throw new IngotException("vit: sizes must be positive, got image " + imageSize + ", patch " + patch
                    + ", channels " + channels + ", width " + width + ", layers " + layers + ", heads " + heads
                    + ", inner " + inner);
        }
        if (imageSize % patch != 0 || width % heads != 0) {
            throw new IngotException("vit: the image of " + imageSize + " must divide into patches of " + patch
                    + ", and the width of " + width + " into " + heads + " heads");
        }
        if (labels < 0 || !(epsilon > 0) || !(deviation >= 0)) {
            throw new IngotException("vit: labels, epsilon and deviation must not be negative, got " + labels + ", "
                    + epsilon + " and " + deviation);
        }
        for (double rate : new double[] {hiddenDropout, attentionDropout}) {
            if (!(rate >= 0 && rate < 1)) {
                throw new IngotException("vit: a dropout rate is in [0, 1), got " + rate);
            }
        }
    }

    /// With a head for so many classes on the first token.
    VitConfig withLabels(int number) {
        return new VitConfig(
                imageSize,
                patch,
                channels,
                width,
                layers,
                heads,
                inner,
                number,
                epsilon,
                activation,
                bias,
                false,
                hiddenDropout,
                attentionDropout,
                deviation);
    }

    /// Patches on each side.
    int side() {
        return imageSize / patch;
    }
}
