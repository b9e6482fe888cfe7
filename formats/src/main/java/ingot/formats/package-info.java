/// Models of other systems: their files become graphs and weights, and the way back.
@NullMarked
package ingot.formats;

import org.jspecify.annotations.NullMarked;
