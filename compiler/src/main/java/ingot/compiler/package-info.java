/// Passes, kernel IR and scheduling: Graph to Program; the Backend contract.
@NullMarked
package ingot.compiler;

import org.jspecify.annotations.NullMarked;
