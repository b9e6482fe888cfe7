/// The CPU backend: kernels to JVM bytecode with the Vector API.
@NullMarked
package ingot.cpu;

import org.jspecify.annotations.NullMarked;
