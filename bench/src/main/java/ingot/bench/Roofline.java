package ingot.bench;

import ingot.compiler.Explain;
import ingot.compiler.Kernel;
import ingot.cpu.Peaks;

/// What a kernel has to do, and the least time in which this machine could: the longer of its arithmetic at the fma
/// peak and its memory traffic at the speed of a copy (Williams et al. 2009).
///
/// @param flops as [Explain#flops] counts them
/// @param bytes of its operands, each once
record Roofline(double flops, double bytes) {
    static Roofline of(Kernel kernel) {
        return new Roofline(Explain.flops(kernel), Explain.bytes(kernel));
    }

    /// Seconds.
    double least(Peaks peaks) {
        return Math.max(flops / (peaks.fma() * 1e9), bytes / (peaks.copy() * 1e9));
    }
}
