/// Op, Value, Graph, Type, shape rules, reference interpreter, verifier, text form.
@NullMarked
package ingot.ir;

import org.jspecify.annotations.NullMarked;
