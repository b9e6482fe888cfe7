/// The ingot command: the only place that wires everything together.
@NullMarked
package ingot.cli;

import org.jspecify.annotations.NullMarked;
