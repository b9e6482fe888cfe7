/// Gradients as graph nodes: one exhaustive switch over ops.
@NullMarked
package ingot.autodiff;

import org.jspecify.annotations.NullMarked;
