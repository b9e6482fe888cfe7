package ingot.cpu;

/// A kernel body that passes cannot express: it runs by the reference interpreter instead.
final class UnsupportedPassException extends RuntimeException {
    UnsupportedPassException(String what) {
        super("no pass for " + what);
    }
}
