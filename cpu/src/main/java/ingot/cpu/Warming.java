package ingot.cpu;

/// How vector code of a plan becomes hot: until HotSpot has compiled it, it is hundreds of times slower than scalar
/// code.
enum Warming {
    /// It is used at once, hot or not.
    NONE,
    /// The first run makes it hot before it computes: for work that takes long anyway.
    FIRST,
    /// Scalar code computes until it is hot: for work that may be over before.
    BESIDE
}
