/// Model, Estimator, optimizers, schedules, callbacks, run directory.
@NullMarked
package ingot.train;

import org.jspecify.annotations.NullMarked;
