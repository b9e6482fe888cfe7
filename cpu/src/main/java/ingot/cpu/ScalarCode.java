package ingot.cpu;

/// A pass over short heap arrays: the form that needs no vector module and is fast from the first call.
///
/// Operand k (reads, writes, then reductions) is `floats[k]` or, for I32 and BOOL, `ints[k]`; an operand that is the
/// same for every i is element 0.
interface ScalarCode {
    void run(float[][] floats, int[][] ints, int n);
}
