package ingot.cpu;

/// A pass over memory by vectors: operand k lies at `bases[k]`; `n` is a multiple of 16.
///
/// BOOL operands are I32 words of 0 and 1, except those that are the same for every i. Reductions go on from the 16
/// lanes at their address.
interface VectorCode {
    void run(long[] bases, int n);
}
