package ingot.ir;

/// An element type of a tensor.
public enum DType {
    F32(4, true),
    BF16(2, true),
    F16(2, true),
    I32(4, false),
    I64(8, false),
    I8(1, false),
    U8(1, false),
    BOOL(1, false);

    private final int bytes;
    private final boolean floating;

    DType(int bytes, boolean floating) {
        this.bytes = bytes;
        this.floating = floating;
    }

    /// Bytes of one element in memory; BOOL is one byte, 0 or 1.
    public int bytes() {
        return bytes;
    }

    public boolean isFloating() {
        return floating;
    }

    /// True for the signed and unsigned integers, false for BOOL.
    public boolean isInteger() {
        return !floating && this != BOOL;
    }

    /// Name in the text form: `f32`, `bf16`, `i32` …
    public String text() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }
}
