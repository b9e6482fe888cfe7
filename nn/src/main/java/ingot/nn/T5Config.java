package ingot.nn;

import ingot.ir.IngotException;

/// The sizes of a T5.
///
/// @param layers blocks of the encoder
/// @param decoderLayers blocks of the decoder
/// @param buckets how many distances between two tokens are told apart
/// @param farthest distance from which on all are one
/// @param gated the feed-forward layer has a gate (T5 1.1)
/// @param tied the token table is the head
/// @param start the token every decoding begins with
/// @param deviation standard deviation of the first weights
public record T5Config(
        int vocabulary,
        int width,
        int headWidth,
        int inner,
        int layers,
        int decoderLayers,
        int heads,
        int buckets,
        int farthest,
        double epsilon,
        Activation activation,
        boolean gated,
        boolean tied,
        int start,
        double dropout,
        double deviation) {
    public T5Config {
        if (vocabulary < 1 || width < 1 || headWidth < 1 || inner < 1 || layers < 0 || decoderLayers < 0 || heads < 1) {
            throw new IngotException("t5: sizes must be positive, got vocabulary " + vocabulary + ", width " + width
                    + ", layers " + layers + " and " + decoderLayers + ", heads " + heads + " of " + headWidth
                    + ", inner " + inner);
        }
        if (buckets < 4 || buckets % 4 != 0 || farthest <= buckets / 2) {
            throw new IngotException("t5: the buckets of distances expected a multiple of 4 and a greatest distance"
                    + " beyond half of it, got " + buckets + " and " + farthest);
        }
        if (start < 0 || start >= vocabulary || !(epsilon > 0) || !(dropout >= 0 && dropout < 1)) {
            throw new IngotException("t5: expected a start token of the vocabulary, a positive epsilon and a dropout in"
                    + " [0, 1), got " + start + ", " + epsilon + " and " + dropout);
        }
    }
}
