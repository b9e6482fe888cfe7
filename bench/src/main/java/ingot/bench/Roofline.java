package ingot.bench;

import ingot.compiler.Explain;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.cpu.Peaks;

/// What a kernel has to do, and the least time in which this machine could: the longer of its arithmetic at the fma
/// peak and its memory traffic at the speed of a copy (Williams et al. 2009).
///
/// @param flops of products; what other kernels compute is not counted
/// @param bytes of its operands, each once
record Roofline(double flops, double bytes) {
    static Roofline of(Kernel kernel) {
        double bytes = 0;
        for (Layout layout : kernel.reads()) {
            bytes += touched(layout);
        }
        for (Layout layout : kernel.writes()) {
            bytes += touched(layout);
        }
        return new Roofline(Explain.flops(kernel), bytes);
    }

    /// Bytes of an operand, without what is repeated.
    private static double touched(Layout layout) {
        double elements = 1;
        for (int axis = 0; axis < layout.shape().rank(); axis++) {
            elements *= layout.stride(axis) == 0 ? 1 : layout.shape().dim(axis);
        }
        return elements * layout.dtype().bytes();
    }

    /// Seconds.
    double least(Peaks peaks) {
        return Math.max(flops / (peaks.fma() * 1e9), bytes / (peaks.copy() * 1e9));
    }
}
