package ingot.cpu;

import ingot.ir.DType;

/// Where a value of a pass comes from, before steps and addresses are known.
sealed interface Source {
    DType dtype();

    /// Operand `index` of the kernel.
    record Argument(int index, DType dtype) implements Source {}

    /// The index along `axis` of the kernel's space, as I32.
    record Count(int axis) implements Source {
        @Override
        public DType dtype() {
            return DType.I32;
        }
    }

    /// One number per row, in scratch memory.
    record Slot(int index, DType dtype) implements Source {}

    /// One row of numbers, in scratch memory.
    record Stash(int index, DType dtype) implements Source {}
}
