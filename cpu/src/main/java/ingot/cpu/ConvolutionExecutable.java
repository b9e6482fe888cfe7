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
/// (and the weights, where they are too large to be packed once for all tasks), then multiply panel by panel into a
/// buffer, where the chains rest between the blocks. The buffer goes to the result when the chains are complete;
/// several segments have a stack of buffers, merged like a binary counter.
///
/// With one or two rows, as in a depthwise convolution, packing would be most of the work. There windows are multiplied
/// where they lie: a vector of neighbouring windows at a time where there are many, eight chains side by side where
/// there are few and the chains are long.
final class ConvolutionExecutable implements Backend.Executable {
    private static final int COLUMNS = 192; // of a task: windows and weights of a block fit the second-level cache
    private static final int ROWS = 96;
    private static final int K_BLOCK = 384;
    private static final long SHARED_BYTES = 16L << 20; // of weights packed once for all tasks
    private static final double TILE_FLOPS = 1e6; // large against the cost of claiming a tile
    private static final int FEW_ROWS = 2;
    private static final int LONG = 4; // times as many steps of a chain as chains
    private static final int LINE = 64;

    private final Crew crew;
    private final RowMath math = RowMath.best();
    private final Tiling tiling;
    private final Warming warming;

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
    private final long[] columns; // where the first element of every window lies
    private final long windowStep; // bytes from window to window in pieces that stay in place
    private final boolean side; // chains side by side
    private final boolean inPlace;
    private final int blocksPerTile;
    private final int slots;
    private final int kBlock;
    private final boolean sharesWeights;
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
        warming = tuner.warming(shape.withSegments(1));
        mr = tiling.rows();
        nr = tiling.columns();
        int tasks = 3 * crew.threads();
        int pieces =
                Math.clamp(Math.ceilDiv(tasks, groups * batch), Math.ceilDiv(n, COLUMNS), Math.max(1, n / (3 * nr)));
        nBlock = Math.ceilDiv(Math.ceilDiv(n, Math.max(1, pieces)), nr) * nr;
        nBlocks = Math.ceilDiv(n, nBlock);
        int parts = Math.clamp(tasks / (groups * batch * nBlocks), 1, Math.max(1, m / (4 * mr)));
        mBlock = Math.ceilDiv(Math.ceilDiv(m, parts), mr) * mr;
        mBlocks = Math.ceilDiv(m, mBlock);
        long step = n < 2 ? 4 : windowsN[n - 1] - windowsN[n - 2];
        inPlace = m <= FEW_ROWS && segments == 1;
        int width = inPlace ? nBlock : nr;
        panels = new Pieces[Math.ceilDiv(n, width)];
        for (int i = 0; i < panels.length; i++) {
            panels[i] = Pieces.of(windowsN, i * width, Math.min(n, (i + 1) * width), inPlace ? step : 4);
        }
        windowStep = step;
        columns = windowsN;
        side = inPlace && n < LONG * nr && k >= LONG * n;
        results = new Pieces[nBlocks];
        for (int i = 0; i < nBlocks; i++) {
            results[i] = Pieces.of(outN, i * nBlock, Math.min(n, (i + 1) * nBlock), 4);
        }
        contiguous = new int[k];
        for (int p = k - 1; p >= 0; p--) {
            boolean next = p + 1 < k && kernelK[p + 1] == kernelK[p] + 4;
            contiguous[p] = next ? contiguous[p + 1] : p + 1;
        }
        double flops = 2.0 * mBlock * nBlock * k;
        blocksPerTile = (int)
                Math.clamp(TILE_FLOPS / Math.max(1, flops), 1, Math.max(1, groups * batch * nBlocks * mBlocks / tasks));
        slots = 32 - Integer.numberOfLeadingZeros(segments);
        kBlock = Math.max(1, Math.ceilDiv(k / segments, Math.max(1, Math.ceilDiv(k / segments, K_BLOCK))));
        sharesWeights = !inPlace && groupBytes() * groups <= SHARED_BYTES;
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
        return lines(4L * mPadded() * nBlock + LINE);
    }

    private long groupBytes() {
        return 4L * Math.ceilDiv(m, mr) * mr * k;
    }

    private long sharedBytes() {
        return sharesWeights ? lines(groupBytes() * groups) : 0;
    }

    private long weightBytes() {
        return sharesWeights || inPlace ? 0 : lines(4L * kBlock * Math.min(mPadded(), step()));
    }

    private long windowBytes() {
        return inPlace ? 0 : lines(4L * kBlock * nBlock + LINE);
    }

    /// Rows whose weights are packed at a time.
    private int step() {
        return Math.ceilDiv(ROWS, mr) * mr;
    }

    private long workerBytes() {
        return weightBytes() + windowBytes() + slots * slotBytes();
    }

    private static long lines(long bytes) {
        return Math.ceilDiv(bytes, LINE) * LINE;
    }

    @Override
    public long scratchBytes() {
        return sharedBytes() + crew.threads() * workerBytes() + LINE;
    }

    @Override
    public void run(long[] addresses, long scratch) {
        long base = Math.ceilDiv(scratch, LINE) * LINE;
        MicroKernel first = kernel(Start.ZERO);
        MicroKernel next = kernel(Start.CONTINUE);
        if (sharesWeights) {
            int panelsOfGroup = Math.ceilDiv(m, mr);
            crew.pool().run(groups * panelsOfGroup, (tile, worker) -> {
                int i = tile % panelsOfGroup * mr;
                long from = addresses[0] + tile / panelsOfGroup * kernelGroup + i * kernelRow;
                packWeights(from, base + 4L * mr * k * tile, Math.min(mr, m - i), 0, k);
            });
        }
        long own = base + sharedBytes();
        int blocks = Math.multiplyExact(groups * batch, nBlocks * mBlocks);
        crew.pool().run(Math.ceilDiv(blocks, blocksPerTile), (tile, worker) -> {
            Task task = new Task(addresses, base, own + worker * workerBytes(), first, next);
            int end = Math.min(blocks, (tile + 1) * blocksPerTile);
            for (int block = tile * blocksPerTile; block < end; block++) {
                int rest = block / mBlocks;
                int image = rest / nBlocks;
                task.run(image / batch, image % batch, rest % nBlocks, block % mBlocks * mBlock);
            }
        });
    }

    private MicroKernel kernel(Start start) {
        MicroKernel known = start == Start.ZERO ? zero : continued;
        if (known == null) {
            if (warming != Warming.NONE) {
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

    /// One panel of the weights: `to[p · mr + w]` is element `from + p` of row w, zero beyond `valid` rows.
    private void packWeights(long a, long to, int valid, int from, int kLength) {
        for (int p = 0; p < kLength; ) {
            int end = Math.min(kLength, contiguous[from + p] - from);
            long source = a + kernelK[from + p];
            if (valid == mr && end - p >= 8) {
                math.packTransposed(source, kernelRow, to + 4L * p * mr, mr, end - p);
            } else {
                for (int q = p; q < end; q++) {
                    for (int w = 0; w < mr; w++) {
                        int bits = w < valid ? Memory.getInt(source + w * kernelRow + 4L * (q - p)) : 0;
                        Memory.putInt(to + 4L * ((long) q * mr + w), bits);
                    }
                }
            }
            p = end;
        }
    }

    /// The work of one worker on one block of the result.
    private final class Task {
        private final long kernel;
        private final long windows;
        private final long out;
        private final long shared; // packed weights of all groups
        private final long weights; // packed
        private final long packed; // windows
        private final long slot0;
        private final MicroKernel first;
        private final MicroKernel next;

        Task(long[] addresses, long shared, long own, MicroKernel first, MicroKernel next) {
            this.shared = shared;
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
                    inPlace(a, b, column, rows, slot);
                } else {
                    chain(a, shared + group * groupBytes() + 4L * i0 * k, b, column, rows, segment, slot);
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

        private void chain(long a, long packedA, long b, int column, int rows, int segment, long slot) {
            int length = k / segments;
            int from = segment * length;
            int panel0 = column * (nBlock / nr);
            int count = Math.min(nBlock / nr, panels.length - panel0);
            for (int done = 0; done == 0 || done < length; done += kBlock) {
                int kLength = Math.min(kBlock, length - done);
                for (int j = 0; j < count; j++) {
                    packWindows(b, panels[panel0 + j], from + done, kLength, packed + 4L * j * nr * kLength);
                }
                MicroKernel code = done == 0 ? first : next;
                if (sharesWeights) {
                    panels(code, packedA + 4L * mr * (from + done), 4L * k, rows, count, kLength, slot);
                    continue;
                }
                for (int i = 0; i < rows; i += step()) {
                    int some = Math.min(step(), rows - i);
                    for (int r = 0; r < some; r += mr) {
                        long to = weights + 4L * r * kLength;
                        packWeights(a + (i + r) * kernelRow, to, Math.min(mr, some - r), from + done, kLength);
                    }
                    panels(code, weights, 4L * kLength, some, count, kLength, slot + 4L * i * nBlock);
                }
            }
        }

        private void packWindows(long b, Pieces pieces, int from, int kLength, long to) {
            math.packPieces(
                    b,
                    windowsK,
                    from,
                    kLength,
                    pieces.starts(),
                    pieces.lengths(),
                    pieces.offsets(),
                    to,
                    nr,
                    windows + windowsEnd);
        }

        /// All panels of the windows with all panels of the weights, whose rows are `aRow` bytes apart.
        private void panels(MicroKernel code, long a, long aRow, int rows, int count, int kLength, long slot) {
            for (int j = 0; j < count; j++) {
                long b = packed + 4L * j * nr * kLength;
                for (int i = 0; i < rows; i += mr) {
                    long to = slot + 4L * ((long) i * nBlock + j * nr);
                    code.run(a + i * aRow, 4L * mr, b, 4L * nr, to, 4L * nBlock, kLength);
                }
            }
        }

        /// Without packing.
        private void inPlace(long a, long b, int column, int rows, long slot) {
            Pieces pieces = panels[column];
            for (int i = 0; i < rows; i++) {
                long weight = a + i * kernelRow;
                long row = slot + 4L * i * nBlock;
                if (side) {
                    int from = column * nBlock;
                    Dots.sideBySide(row, weight, kernelK, b, windowsK, columns, from, Math.min(n - from, nBlock));
                    continue;
                }
                for (int r = 0; r < pieces.starts().length; r++) {
                    math.windows(
                            row + 4L * pieces.starts()[r],
                            weight,
                            kernelK,
                            b + pieces.offsets()[r],
                            windowsK,
                            windowStep,
                            0,
                            k,
                            pieces.lengths()[r],
                            windows + windowsEnd);
                }
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
