package ingot.compiler;

import org.jspecify.annotations.Nullable;

/// Turns kernels into code for one kind of processor. Equal kernels give the same `Executable`.
public interface Backend {
    Executable prepare(Kernel kernel);

    /// What runs the kernels, for reports: `cpu, 2 threads, 256-bit vectors`.
    String describe();

    /// Another backend with the same bits for one more thread, which works beside the threads of this one.
    Backend background();

    /// Begins a row of runs by the calling thread, which ends when the same thread closes it. A backend may hold the
    /// thread on a processor meanwhile.
    default Session session() {
        return () -> {};
    }

    /// A row of runs.
    interface Session extends AutoCloseable {
        @Override
        void close();
    }

    /// A prepared kernel.
    interface Executable {
        /// Bytes of scratch memory a run needs, 64-byte aligned; shared by all kernels, its content does not survive a
        /// run.
        long scratchBytes();

        /// Runs to completion over operands at absolute addresses: the kernel's reads, then its writes.
        void run(long[] addresses, long scratch);

        /// The same kernel with a read in an order of its own, which pays if the values stay the same for many runs;
        /// null if there is none, or no gain.
        default @Nullable Packed packed(int read) {
            return null;
        }
    }

    /// A prepared kernel that takes one of its reads packed.
    ///
    /// @param order equal orders of equal values are the same bytes, whichever kernel they are packed for
    /// @param bytes of the packed read, 64-byte aligned
    /// @param packing packs the read
    /// @param code takes the address of the packed read instead
    record Packed(Object order, long bytes, Packing packing, Executable code) {}

    /// Brings values into an order.
    interface Packing {
        void pack(long from, long to);
    }
}
