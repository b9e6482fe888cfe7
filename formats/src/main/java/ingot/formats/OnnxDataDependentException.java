package ingot.formats;

import ingot.ir.IngotException;
import java.util.Set;

/// A shape or a choice depends on values that are only known at run time.
public final class OnnxDataDependentException extends IngotException {
    private static final long serialVersionUID = 1L;

    private final transient Set<String> inputs;

    OnnxDataDependentException(String message, Set<String> inputs) {
        super(message);
        this.inputs = Set.copyOf(inputs);
    }

    /// The inputs of the model that it depends on: with their values in the binding the import goes on.
    public Set<String> inputs() {
        return inputs;
    }
}
