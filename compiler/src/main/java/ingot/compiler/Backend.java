package ingot.compiler;

/// Turns kernels into code for one kind of processor. Equal kernels give the same `Executable`.
public interface Backend {
    Executable prepare(Kernel kernel);

    /// What runs the kernels, for reports: `cpu, 2 threads, 256-bit vectors`.
    String describe();

    /// Another backend with the same bits for one more thread, which works beside the threads of this one.
    Backend background();

    /// A prepared kernel.
    interface Executable {
        /// Bytes of scratch memory a run needs, 64-byte aligned; shared by all kernels, its content does not survive a
        /// run.
        long scratchBytes();

        /// Runs to completion over operands at absolute addresses: the kernel's reads, then its writes.
        void run(long[] addresses, long scratch);
    }
}
