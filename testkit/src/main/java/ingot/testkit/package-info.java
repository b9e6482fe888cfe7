/// Random graphs, gradient check, golden files: support shared by the tests of the other modules.
@NullMarked
package ingot.testkit;

import org.jspecify.annotations.NullMarked;
