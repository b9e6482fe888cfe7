/// Functions, layers and model architectures: all of them build graphs.
@NullMarked
package ingot.nn;

import org.jspecify.annotations.NullMarked;
