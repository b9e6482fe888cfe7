package ingot.cpu;

import static ingot.cpu.Memory.ALL;
import static ingot.cpu.Memory.getFloat;
import static ingot.cpu.Memory.getInt;
import static ingot.cpu.Memory.putFloat;
import static ingot.cpu.Memory.putInt;
import static ingot.cpu.Memory.putLong;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;

import ingot.cpu.Pass.Kind;
import ingot.ir.DType;
import ingot.ir.Op;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// A compiled pass on operands with known steps from one element to the next.
///
/// Vector code reads and writes in place where operands are contiguous F32 or I32; other operands are packed chunk by
/// chunk. What vectors leave over, and everything while there is no vector code, goes through heap arrays to scalar
/// code.
final class BoundPass {
    /// One call of 128 is timed.
    private static final int SAMPLE = 127;

    private final CompiledPass compiled;
    private final int reads;
    private final int writes;
    private final DType[] dtypes;
    private final Kind[] kinds;
    private final long[] steps;
    private final boolean[] packs;
    private final boolean direct;
    private int calls;

    /// `steps`: bytes from element to element of each read and write; for COUNT the step of the number, 1.
    BoundPass(CompiledPass compiled, long[] steps) {
        Pass pass = compiled.pass();
        this.compiled = compiled;
        this.steps = steps.clone();
        reads = pass.reads().size();
        writes = pass.writes().size();
        int operands = pass.operands();
        dtypes = new DType[operands];
        kinds = new Kind[operands];
        packs = new boolean[operands];
        boolean inPlace = true;
        for (int k = 0; k < operands; k++) {
            Pass.Port port = k < reads
                    ? pass.reads().get(k)
                    : k < reads + writes
                            ? pass.writes().get(k - reads)
                            : new Pass.Port(pass.reduced(k - reads - writes).dtype(), Kind.EACH);
            dtypes[k] = port.dtype();
            kinds[k] = port.kind();
            packs[k] = k < reads + writes
                    && port.kind() == Kind.EACH
                    && (port.dtype() == DType.BOOL || steps[k] != port.dtype().bytes());
            inPlace &= !packs[k];
        }
        direct = inPlace;
    }

    CompiledPass compiled() {
        return compiled;
    }

    /// Elements [0, n) of operands that start at `bases`: reads, writes, and 16 lanes for each reduction, which are set
    /// to the identity first.
    void run(long[] bases, int n, Workspace work) {
        VectorCode vector = compiled.vector();
        if (vector == null) {
            run(null, bases, n, work);
            compiled.worked(n);
        } else if ((++calls & SAMPLE) != 0) {
            run(vector, bases, n, work);
        } else {
            long start = System.nanoTime();
            run(vector, bases, n, work);
            compiled.sample(System.nanoTime() - start, n);
        }
    }

    /// The same by the given code.
    void run(@Nullable VectorCode vector, long[] bases, int n, Workspace work) {
        for (int r = 0; r < dtypes.length - reads - writes; r++) {
            fill(
                    bases[reads + writes + r],
                    Lanes.identity(compiled.pass().reductions().get(r), dtypes[reads + writes + r]));
        }
        int done = 0;
        if (vector != null) {
            done = n & -16;
            if (direct) {
                if (done > 0) {
                    vector.run(bases, done);
                }
            } else {
                for (int from = 0; from < done; from += Workspace.CHUNK) {
                    packed(vector, bases, from, Math.min(Workspace.CHUNK, done - from), work);
                }
            }
        }
        for (int from = done; from < n; from += Workspace.CHUNK) {
            scalar(bases, from, Math.min(Workspace.CHUNK, n - from), work);
        }
    }

    private static void fill(long lanes, int identity) {
        long two = identity & 0xFFFF_FFFFL | (long) identity << 32;
        for (int l = 0; l < 8; l++) {
            putLong(lanes + 8L * l, two);
        }
    }

    private void packed(VectorCode vector, long[] bases, int from, int n, Workspace work) {
        long[] at = work.bases;
        for (int k = 0; k < dtypes.length; k++) {
            if (k >= reads + writes || kinds[k] != Kind.EACH && kinds[k] != Kind.COUNT) {
                at[k] = bases[k];
            } else if (!packs[k]) {
                at[k] = bases[k] + from * steps[k];
            } else {
                at[k] = work.packed[k];
                if (k < reads) {
                    pack(bases[k] + from * steps[k], steps[k], dtypes[k], work.packed[k], n);
                }
            }
        }
        vector.run(at, n);
        for (int k = reads; k < reads + writes; k++) {
            if (packs[k]) {
                unpack(work.packed[k], bases[k] + from * steps[k], steps[k], dtypes[k], n);
            }
        }
    }

    private static void pack(long from, long step, DType dtype, long to, int n) {
        if (dtype == DType.BOOL) {
            for (int j = 0; j < n; j++) {
                putInt(to + 4L * j, getByte(from + j * step));
            }
        } else {
            for (int j = 0; j < n; j++) {
                putInt(to + 4L * j, getInt(from + j * step));
            }
        }
    }

    private static void unpack(long from, long to, long step, DType dtype, int n) {
        if (dtype == DType.BOOL) {
            for (int j = 0; j < n; j++) {
                putByte(to + j * step, (byte) getInt(from + 4L * j));
            }
        } else {
            for (int j = 0; j < n; j++) {
                putInt(to + j * step, getInt(from + 4L * j));
            }
        }
    }

    private void scalar(long[] bases, int from, int n, Workspace work) {
        for (int k = 0; k < reads; k++) {
            long step = steps[k];
            switch (kinds[k]) {
                case EACH -> {
                    if (dtypes[k] == DType.F32) {
                        loadFloats(bases[k] + from * step, step, work.floats[k], n);
                    } else {
                        loadInts(bases[k] + from * step, step, dtypes[k], work.ints[k], n);
                    }
                }
                case SAME -> {
                    if (dtypes[k] == DType.F32) {
                        work.floats[k][0] = getFloat(bases[k]);
                    } else {
                        work.ints[k][0] = dtypes[k] == DType.I32 ? getInt(bases[k]) : getByte(bases[k]);
                    }
                }
                case COUNT -> {
                    int first = (int) bases[k] + from;
                    int[] ints = work.ints[k];
                    for (int j = 0; j < n; j++) {
                        ints[j] = first + j;
                    }
                }
                case NUMBER -> work.ints[k][0] = (int) bases[k];
            }
        }
        compiled.scalar().run(work.floats, work.ints, n);
        for (int k = reads; k < reads + writes; k++) {
            long step = steps[k];
            if (dtypes[k] == DType.F32) {
                storeFloats(work.floats[k], bases[k] + from * step, step, n);
            } else {
                storeInts(work.ints[k], bases[k] + from * step, step, dtypes[k], n);
            }
        }
        for (int k = reads + writes; k < dtypes.length; k++) {
            Op.ReduceKind kind = compiled.pass().reductions().get(k - reads - writes);
            if (dtypes[k] == DType.F32) {
                Lanes.combine(kind, bases[k], work.floats[k], n);
            } else {
                Lanes.combine(kind, bases[k], work.ints[k], n);
            }
        }
    }

    private static void loadFloats(long from, long step, float[] to, int n) {
        if (step == 4) {
            MemorySegment.copy(ALL, JAVA_FLOAT_UNALIGNED, from, to, 0, n);
        } else {
            for (int j = 0; j < n; j++) {
                to[j] = getFloat(from + j * step);
            }
        }
    }

    private static void loadInts(long from, long step, DType dtype, int[] to, int n) {
        if (dtype == DType.BOOL) {
            for (int j = 0; j < n; j++) {
                to[j] = getByte(from + j * step);
            }
        } else if (step == 4) {
            MemorySegment.copy(ALL, JAVA_INT_UNALIGNED, from, to, 0, n);
        } else {
            for (int j = 0; j < n; j++) {
                to[j] = getInt(from + j * step);
            }
        }
    }

    private static void storeFloats(float[] from, long to, long step, int n) {
        if (step == 4) {
            MemorySegment.copy(from, 0, ALL, JAVA_FLOAT_UNALIGNED, to, n);
        } else {
            for (int j = 0; j < n; j++) {
                putFloat(to + j * step, from[j]);
            }
        }
    }

    private static void storeInts(int[] from, long to, long step, DType dtype, int n) {
        if (dtype == DType.BOOL) {
            for (int j = 0; j < n; j++) {
                putByte(to + j * step, (byte) from[j]);
            }
        } else if (step == 4) {
            MemorySegment.copy(from, 0, ALL, JAVA_INT_UNALIGNED, to, n);
        } else {
            for (int j = 0; j < n; j++) {
                putInt(to + j * step, from[j]);
            }
        }
    }

    private static byte getByte(long address) {
        return ALL.get(JAVA_BYTE, address & Memory.MASK);
    }

    private static void putByte(long address, byte value) {
        ALL.set(JAVA_BYTE, address & Memory.MASK, value);
    }
}
