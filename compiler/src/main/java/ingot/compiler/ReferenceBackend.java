package ingot.compiler;

/// A backend without code: kernels run in the reference interpreter.
public final class ReferenceBackend implements Backend {
    @Override
    public Executable prepare(Kernel kernel) {
        return new Executable() {
            @Override
            public long scratchBytes() {
                return 0;
            }

            @Override
            public void run(long[] addresses, long scratch) {
                KernelInterpreter.run(kernel, addresses);
            }
        };
    }

    @Override
    public Backend background() {
        return new ReferenceBackend();
    }

    @Override
    public String describe() {
        return "reference interpreter, 1 thread";
    }
}
