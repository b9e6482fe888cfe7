package ingot.nn;

import ingot.ir.IngotException;

/// The sizes of a decoder whose attention and feed-forward layer may read the same input: Phi and GPT-NeoX.
///
/// @param keyHeads divides `heads`
/// @param rope turns the first channels of each head
/// @param parallel both branches are added to the input at once; else one after the other
/// @param tied the token table is the head
/// @param headNorms queries and keys are normalised per head (Phi)
/// @param deviation standard deviation of the first weights
public record ParallelConfig(
        int vocabulary,
        int context,
        int width,
        int layers,
        int heads,
        int keyHeads,
        int inner,
        double epsilon,
        Activation activation,
        Rope rope,
        boolean parallel,
        boolean bias,
        boolean tied,
        boolean headNorms,
        double deviation) {
    public ParallelConfig {
        if (vocabulary < 1 || context < 1 || width < 1 || layers < 0 || heads < 1 || keyHeads < 1 || inner < 1) {
            throw new IngotException("decoder: sizes must be positive, got vocabulary " + vocabulary + ", context "
                    + context + ", width " + width + ", layers " + layers + ", heads " + heads + " over " + keyHeads
                    + ", inner " + inner);
        }
        if (width % heads != 0 || heads % keyHeads != 0) {
            throw new IngotException("decoder: width " + width + " must divide into " + heads
                    + " heads, and those into " + keyHeads + " groups");
        }
        if (rope.width() > width / heads) {
            throw new IngotException("decoder: " + rope.width() + " channels are to turn, a head has " + width / heads);
        }
        if (!(epsilon > 0) || !(deviation >= 0)) {
            throw new IngotException("decoder: epsilon must be positive and deviation not negative, got " + epsilon
                    + " and " + deviation);
        }
    }

    int headWidth() {
        return width / heads;
    }
}
