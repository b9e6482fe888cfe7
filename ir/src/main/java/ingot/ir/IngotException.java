package ingot.ir;

/// A failure whose message is written for the user: it names the value, what was expected, what was found, where, and
/// what to do.
public class IngotException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public IngotException(String message) {
        super(message);
    }

    public IngotException(String message, Throwable cause) {
        super(message, cause);
    }
}
