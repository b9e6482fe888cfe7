package ingot.nn;

import ingot.ir.IngotException;

/// The sizes of a BERT and its relatives.
///
/// @param positions rows of the position table
/// @param types rows of the token type table; 0: none
/// @param padding RoBERTa's: the id whose tokens stand at that position, while the others count from the next one on;
/// −1: positions count from 0
/// @param hiddenDropout after the embeddings and before each residual addition
/// @param headDropout before the last layer of the head
/// @param pooler a pooler belongs to the model
/// @param deviation standard deviation of the first weights
public record BertConfig(
        Layout layout,
        int vocabulary,
        int positions,
        int width,
        int layers,
        int heads,
        int inner,
        int types,
        int padding,
        double epsilon,
        Activation activation,
        double hiddenDropout,
        double attentionDropout,
        double headDropout,
        boolean pooler,
        Head head,
        double deviation) {
    public BertConfig {
        if (vocabulary < 1 || positions < 1 || width < 1 || layers < 0 || heads < 1 || inner < 1 || types < 0) {
            throw new IngotException("bert: sizes must be positive, got vocabulary " + vocabulary + ", positions "
                    + positions + ", width " + width + ", layers " + layers + ", heads " + heads + ", inner " + inner
                    + ", types " + types);
        }
        if (width % heads != 0) {
            throw new IngotException("bert: width " + width + " does not divide into " + heads
                    + " heads; choose a multiple of " + heads);
        }
        if (padding < -1 || padding + 1 >= positions) {
            throw new IngotException("bert: positions count from " + (padding + 1) + ", the table has " + positions);
        }
        for (double rate : new double[] {hiddenDropout, attentionDropout, headDropout}) {
            if (!(rate >= 0 && rate < 1)) {
                throw new IngotException("bert: a dropout rate is in [0, 1), got " + rate);
            }
        }
        if (!(epsilon > 0) || !(deviation >= 0)) {
            throw new IngotException(
                    "bert: epsilon must be positive and deviation not negative, got " + epsilon + " and " + deviation);
        }
    }

    /// Whose file it is: the names of the weights, and the shape of the head.
    public enum Layout {
        /// The pooler is a layer of the model, the head one more.
        BERT,
        /// The head has a hidden layer with tanh, and no pooler is used.
        ROBERTA,
        /// Other names; the head has a hidden layer with relu.
        DISTILBERT
    }

    /// Hidden states only.
    public BertConfig withoutPooler() {
        return with(Head.NONE, false);
    }

    public BertConfig withHead(Head other) {
        boolean needed =
                layout == Layout.BERT && (other.kind() == Head.Kind.CLASS || other.kind() == Head.Kind.NUMBERS);
        boolean kept = other.kind() == Head.Kind.NONE && pooler;
        return with(other, needed || kept);
    }

    private BertConfig with(Head other, boolean pooled) {
        return new BertConfig(
                layout,
                vocabulary,
                positions,
                width,
                layers,
                heads,
                inner,
                types,
                padding,
                epsilon,
                activation,
                hiddenDropout,
                attentionDropout,
                headDropout,
                pooled,
                other,
                deviation);
    }
}
