/// Corpora, tokenizers, batches: order is a pure function of (seed, epoch, position).
@NullMarked
package ingot.data;

import org.jspecify.annotations.NullMarked;
