/// The executor: walks a Program; threads, memory budget, durability.
@NullMarked
package ingot.runtime;

import org.jspecify.annotations.NullMarked;
