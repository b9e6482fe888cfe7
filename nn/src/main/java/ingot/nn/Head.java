package ingot.nn;

import ingot.ir.IngotException;

/// What an encoder ends in.
///
/// @param labels outputs of the head; 0 without one
public record Head(Kind kind, int labels) {
    public static final Head NONE = new Head(Kind.NONE, 0);

    public enum Kind {
        /// Hidden states only.
        NONE,
        /// One class for the whole text.
        CLASS,
        /// Numbers for the whole text, learned by squared error.
        NUMBERS,
        /// One class per token.
        TOKEN_CLASS
    }

    public Head {
        if ((kind == Kind.NONE) != (labels == 0) || labels < 0) {
            throw new IngotException("head: " + kind + " with " + labels + " labels; a head needs at least one");
        }
    }

    public static Head of(Kind kind, int labels) {
        return new Head(kind, labels);
    }
}
