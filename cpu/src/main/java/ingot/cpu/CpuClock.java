package ingot.cpu;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/// Nanoseconds of CPU time the current thread has used: what a kernel costs, also on a machine that is busy elsewhere.
final class CpuClock {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private CpuClock() {}

    static long now() {
        return THREADS.isCurrentThreadCpuTimeSupported() ? THREADS.getCurrentThreadCpuTime() : System.nanoTime();
    }
}
