/// Benchmarks: JMH micro-benchmarks and side-by-side runs.
@NullMarked
package ingot.bench;

import org.jspecify.annotations.NullMarked;
