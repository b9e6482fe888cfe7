package ingot.cpu;

import ingot.compiler.Backend;
import ingot.compiler.Kernel;
import ingot.compiler.Layout;
import ingot.cpu.MicroKernel.Start;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// A convolution kernel by the micro-kernels of the matmul: windows are packed from wherever they lie, as tables of
/// offsets say (the scatter layout of Matthews, High-Performance Tensor Contraction without Transposition, SISC 40(1),
/// 2018), so that they never exist as a matrix.
///
/// A task owns some columns n of one group (and, if there are few, some rows m) and walks k in blocks: pack the windows
/// and the weights, then multiply panel by panel into a buffer, where the chains rest between the blocks. The buffer
/// goes to the result when the chains are complete; several segments have a stack of buffers, merged like a binary
/// counter.
///
/// With one or two rows, as in a depthwise convolution, packing would be most of the work. There, where pieces of the
/// windows are contiguous, they are multiplied where they lie.
final class ConvolutionExecutable implements Backend.Executable {
    private static final int COLUMNS = 192; // of a task: windows and weights of a block fit the second-level cache
    private static final int ROWS = 96;
    private static final int K_BLOCK = 256;
    private static final int FEW_ROWS = 2;
    private static final int LINE = 64;

    private final Crew crew;
    private final RowMath math = RowMath.best();
    private final Tiling tiling;
    private final boolean guarded;

    private final int groups;
    private final int batch; // columns [b · n, (b + 1) · n): the outer axes of n, as far as that leaves enough columns
    private final int m;
    private final int n;
    private final int k;
    private final int segments;

    private final long[] batchWindows;
    private final long[] batchOut;
    private final long[] kernelK;
    private final long[] windowsK;
    private final int[] contiguous; // from position p of k on the kernel's elements follow each other up to here
    private final long kernelGroup;
    private final long kernelRow;
    private final long windowsGroup;
    private final long outGroup;
    private final long outRow;
    private final long windowsEnd; // last byte of the windows

    private final int mr;
    private final int nr;
    private final int nBlock;
    private final int mBlock;
    private final int nBlocks;
    private final int mBlocks;
    private final Pieces[] panels; // of the windows: of every nr columns, or of every block if they stay in place
    private final Pieces[] results;
    private final boolean inPlace;
    private final int slots;
    private volatile @Nullable MicroKernel zero;
    private volatile @Nullable MicroKernel continued;

    ConvolutionExecutable(Kernel.Convolution convolution, Crew crew, Autotuner tuner) {
        this.crew = crew;
        Layout kernel = convolution.kernel();
        Layout windows = convolution.windows();
        Layout out = convolution.out();
        int axes = convolution.contracted();
        segments = convolution.segments();
        groups = kernel.shape().dim(0);
        m = kernel.shape().dim(1);
        kernelK = table(kernel, 2, 2 + axes);
        windowsK = table(windows, 1, 1 + axes);
        k = kernelK.length;
        int last = out.shape().rank();
        int from = inner(out);
        batchWindows = table(windows, 1 + axes, 1 + axes + from - 2);
        batchOut = table(out, 2, from);
        batch = batchOut.length;
        long[] windowsN = table(windows, 1 + axes + from - 2, windows.shape().rank());
        long[] outN = table(out, from, last);
        n = outN.length;
        kernelGroup = 4 * kernel.stride(0);
        kernelRow = 4 * kernel.stride(1);
        windowsGroup = 4 * windows.stride(0);
        outGroup = 4 * out.stride(0);
        outRow = 4 * out.stride(1);
        long reach = 4;
        for (int i = 0; i < windows.shape().rank(); i++) {
            reach += 4 * Math.max(0, windows.stride(i) * (windows.shape().dim(i) - 1L));
        }
        windowsEnd = reach;
        MatmulShape shape = MatmulShape.of(m, n, Math.max(1, k));
        tiling = Tilings.of(shape, crew.threads());
        guarded = tuner.guards(shape.withSegments(1));
        mr = tiling.rows();
        nr = tiling.columns();
        nBlock = Math.ceilDiv(Math.min(n, Math.max(nr, COLUMNS)), nr) * nr;
        nBlocks = Math.ceilDiv(n, nBlock);
        int tasks = groups * batch * nBlocks;
        int parts = Math.clamp(4L * crew.threads() / tasks, 1, Math.max(1, Math.ceilDiv(m, 4 * mr)));
        mBlock = Math.ceilDiv(Math.ceilDiv(m, parts), mr) * mr;
        mBlocks = Math.ceilDiv(m, mBlock);
        inPlace = m <= FEW_ROWS && n >= 8 && Pieces.of(windowsN, 0, n).starts().length * 8L <= n;
        int width = inPlace ? nBlock : nr;
        panels = new Pieces[Math.ceilDiv(n, width)];
        for (int i = 0; i < panels.length; i++) {
            panels[i] = Pieces.of(windowsN, i * width, Math.min(n, (i + 1) * width));
        }
        results = new Pieces[nBlocks];
        for (int i = 0; i < nBlocks; i++) {
            results[i] = Pieces.of(outN, i * nBlock, Math.min(n, (i + 1) * nBlock));
        }
        contiguous = new int[k];
        for (int p = k - 1; p >= 0; p--) {
            boolean next = p + 1 < k && kernelK[p + 1] == kernelK[p] + 4;
            contiguous[p] = next ? contiguous[p + 1] : p + 1;
        }
        slots = 32 - Integer.numberOfLeadingZeros(segments);
    }

    private static long[] table(Layout layout, int from, int to) {
        int[] dims = Arrays.copyOfRange(layout.shape().dims(), from, to);
        long[] strides = new long[to - from];
        for (int i = 0; i < strides.length; i++) {
            strides[i] = layout.stride(from + i);
        }
        return Pieces.table(dims, strides);
    }

    /// The first axis of n that is not batch: a task shall have a full block of columns.
    private static int inner(Layout out) {
        int axis = out.shape().rank() - 1;
        long columns = out.shape().dim(axis);
        while (axis > 2 && columns < COLUMNS) {
            axis--;
            columns *= out.shape().dim(axis);
        }
        return axis;
    }

    private int mPadded() {
        return Math.ceilDiv(mBlock, mr) * mr;
    }

    private long slotBytes() {
        return lines(4L * mPadded() * nBlock);
    }

    private long weightBytes() {
        return lines(4L * Math.min(K_BLOCK, Math.max(1, k)) * Math.min(mPadded(), ROWS / mr * mr + mr));
    }

    private long windowBytes() {
        return lines(4L * Math.min(K_BLOCK, Math.max(1, k)) * nBlock + LINE);
    }

    private long workerBytes() {
        return weightBytes() + windowBytes() + slots * slotBytes();
    }

    private static long lines(long bytes) {
        return Math.ceilDiv(bytes, LINE) * LINE;
    }

    @Override
    public long scratchBytes() {
        return crew.threads() * workerBytes() + LINE;
    }

    @Override
    public void run(long[] addresses, long scratch) {
        long base = Math.ceilDiv(scratch, LINE) * LINE;
        MicroKernel first = kernel(Start.ZERO);
        MicroKernel next = kernel(Start.CONTINUE);
        int tasks = Math.multiplyExact(groups * batch, nBlocks * mBlocks);
        crew.pool().run(tasks, (tile, worker) -> {
            int rest = tile / mBlocks;
            int column = rest % nBlocks;
            int image = rest / nBlocks;
            new Task(addresses, base + worker * workerBytes(), first, next)
                    .run(image / batch, image % batch, column, tile % mBlocks * mBlock);
        });
    }

    private MicroKernel kernel(Start start) {
        MicroKernel known = start == Start.ZERO ? zero : continued;
        if (known == null) {
            if (guarded) {
                MicroKernels.warm(tiling, MicroKernel.Layout.COLUMNS, start);
            }
            known = MicroKernels.of(tiling, MicroKernel.Layout.COLUMNS, start);
            if (start == Start.ZERO) {
                zero = known;
            } else {
                continued = known;
            }
        }
        return known;
    }

    /// The work of one worker on one block of the result.
    private final class Task {
        private final long kernel;
        private final long windows;
        private final long out;
        private final long weights; // packed
        private final long packed; // windows
        private final long slot0;
        private final MicroKernel first;
        private final MicroKernel next;

        Task(long[] addresses, long own, MicroKernel first, MicroKernel next) {
            kernel = addresses[0];
            windows = addresses[1];
            out = addresses[2];
            weights = own;
            packed = own + weightBytes();
            slot0 = packed + windowBytes();
            this.first = first;
            this.next = next;
        }

        void run(int group, int image, int column, int i0) {
            int rows = Math.min(mBlock, m - i0);
            long a = kernel + group * kernelGroup + i0 * kernelRow;
            long b = windows + group * windowsGroup + batchWindows[image];
            int top = 0;
            for (int segment = 0; segment < segments; segment++) {
                long slot = slot0 + top * slotBytes();
                if (inPlace) {
                    inPlace(a, b, column, rows, segment, slot);
                } else {
                    chain(a, b, column, rows, segment, slot);
                }
                top++;
                for (int merges = Integer.numberOfTrailingZeros(~segment); merges > 0; merges--) {
                    top = merge(top, rows);
                }
            }
            while (top > 1) {
                top = merge(top, rows);
            }
            store(out + group * outGroup + i0 * outRow + batchOut[image], results[column], rows);
        }

        private int merge(int top, int rows) {
            long left = slot0 + (top - 2) * slotBytes();
            math.add(left, left + slotBytes(), rows * nBlock);
            return top - 1;
        }

        private void chain(long a, long b, int column, int rows, int segment, long slot) {
            int length = k / segments;
            int from = segment * length;
            int panel0 = column * (nBlock / nr);
            int count = Math.min(nBlock / nr, panels.length - panel0);
            for (int done = 0; done == 0 || done < length; done += K_BLOCK) {
                int kLength = Math.min(K_BLOCK, length - done);
                for (int j = 0; j < count; j++) {
                    Pieces pieces = panels[panel0 + j];
                    math.packPieces(
                            b,
                            windowsK,
                            from + done,
                            kLength,
                            pieces.starts(),
                            pieces.lengths(),
                            pieces.offsets(),
                            packed + 4L * j * nr * kLength,
                            nr,
                            windows + windowsEnd);
                }
                int step = ROWS / mr * mr + mr;
                for (int i = 0; i < rows; i += step) {
                    int some = Math.min(step, rows - i);
                    packWeights(a + i * kernelRow, some, from + done, kLength);
                    panels(done == 0 ? first : next, some, count, kLength, slot + 4L * i * nBlock);
                }
            }
        }

        private void panels(MicroKernel code, int rows, int count, int kLength, long slot) {
            for (int j = 0; j < count; j++) {
                long b = packed + 4L * j * nr * kLength;
                for (int i = 0; i < rows; i += mr) {
                    code.run(
                            weights + 4L * i * kLength,
                            4L * mr,
                            b,
                            4L * nr,
                            slot + 4L * ((long) i * nBlock + j * nr),
                            4L * nBlock,
                            kLength);
                }
            }
        }

        private void packWeights(long a, int rows, int from, int kLength) {
            for (int i = 0; i < rows; i += mr) {
                long to = weights + 4L * i * kLength;
                int valid = Math.min(mr, rows - i);
                for (int p = 0; p < kLength; ) {
                    int end = Math.min(kLength, contiguous[from + p] - from);
                    long source = a + i * kernelRow + kernelK[from + p];
                    if (valid == mr && end - p >= 8) {
                        math.packTransposed(source, kernelRow, to + 4L * p * mr, mr, end - p);
                    } else {
                        gather(source, to + 4L * p * mr, valid, end - p);
                    }
                    p = end;
                }
            }
        }

        private void gather(long source, long to, int valid, int kLength) {
            for (int p = 0; p < kLength; p++) {
                for (int w = 0; w < mr; w++) {
                    int bits = w < valid ? Memory.getInt(source + w * kernelRow + 4L * p) : 0;
                    Memory.putInt(to + 4L * ((long) p * mr + w), bits);
                }
            }
        }

        /// Without packing: piece by piece, each run of k at a time that steps evenly through the windows.
        private void inPlace(long a, long b, int column, int rows, int segment, long slot) {
            int until = (segment + 1) * (k / segments);
            Pieces pieces = panels[column];
            Memory.fill(slot, 4L * rows * nBlock, (byte) 0);
            for (int p = segment * (k / segments); p < until; ) {
                int end = p + 1;
                long aStep = end < until ? kernelK[end] - kernelK[p] : 4;
                long bStep = end < until ? windowsK[end] - windowsK[p] : 4;
                while (end < until
                        && kernelK[end] - kernelK[end - 1] == aStep
                        && windowsK[end] - windowsK[end - 1] == bStep) {
                    end++;
                }
                for (int i = 0; i < rows; i++) {
                    long weight = a + i * kernelRow + kernelK[p];
                    for (int r = 0; r < pieces.starts().length; r++) {
                        long acc = slot + 4L * ((long) i * nBlock + pieces.starts()[r]);
                        long from = b + windowsK[p] + pieces.offsets()[r];
                        math.rank(acc, weight, aStep, from, bStep, end - p, pieces.lengths()[r]);
                    }
                }
                p = end;
            }
        }

        private void store(long c, Pieces pieces, int rows) {
            for (int i = 0; i < rows; i++) {
                long from = slot0 + 4L * i * nBlock;
                long to = c + i * outRow;
                for (int r = 0; r < pieces.starts().length; r++) {
                    math.copy(from + 4L * pieces.starts()[r], to + pieces.offsets()[r], pieces.lengths()[r]);
                }
            }
        }
    }
}
