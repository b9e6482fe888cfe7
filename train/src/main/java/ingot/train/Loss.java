package ingot.train;

/// What a model is trained to make small; the mean over the rows of a batch.
public enum Loss {
    /// −log of the probability of the next token, for language models.
    NEXT_TOKEN,
    /// −log of the probability of the right class.
    CROSS_ENTROPY,
    /// Mean of the squared differences.
    MEAN_SQUARED_ERROR
}
