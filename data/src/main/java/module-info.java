/// Corpora, tokenizers, batches: order is a pure function of (seed, epoch, position).
module ingot.data {
    requires transitive ingot.ir;
    requires java.desktop; // javax.imageio, which needs no display
    requires transitive tools.jackson.databind;
    requires tools.jackson.dataformat.csv;
    requires ai.djl.tokenizers;
    requires ai.djl.api;
    requires static transitive org.jspecify;

    exports ingot.data;
}
