package ingot.cpu;

import ingot.cpu.MicroKernel.Layout;
import ingot.cpu.MicroKernel.Start;
import ingot.cpu.Tiling.Packing;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A matmul as tasks over blocks of C, each a grid of register tiles.
///
/// A task owns a block of C, mBlock × nBlock, and walks K in blocks: pack A and B (or find them packed, or read them in
/// place), then for each panel of B (nr columns, in L1) and each panel of A (mr rows, in L2) call the micro-kernel.
/// From one K block to the next the accumulators rest in C, so the chain is never split.
///
/// Where C cannot hold accumulators (several segments, an addition to the old C after several K blocks, a strided C)
/// the block is staged in the worker's scratch: a small stack of partial blocks, merged like a binary counter, which is
/// the balanced tree over segments.
final class BlockedMatmul {
    private static final long LINE = 64;

    /// The largest packed piece of a shared B: small against a third-level cache, because there are two of them.
    static final long PHASE_BYTES = 3L << 20;

    /// Panels of B that are packed in one go.
    private static final int GROUP = 8;

    final MatmulShape shape;
    final Tiling tiling;
    final Epilogue epilogue;

    private final RowMath math;
    private final long biasRow;
    private final long biasColumn;

    // Byte strides: along m and k of A, k and n of B, m and n of C.
    private final long aRow;
    private final long aColumn;
    private final long bRow;
    private final long bColumn;
    private final long cRow;
    private final long cColumn;

    private final int mr;
    private final int nr;
    private final int mBlocks;
    private final int nBlocks;
    private final int segmentLength;
    private final int kBlock;
    private final int kBlocks; // per segment

    private final boolean packA;
    private final Packing packB;
    private final boolean oneB; // every batch reads the same B
    private final boolean staged;
    private final boolean fusedMerge; // odd segments add to the top of the stack as they are stored
    private final int units; // blocks of B: columns, and batches where each has its own
    private final int phaseUnits; // blocks of B in a phase
    private final int phaseBlocks; // pieces of the chain in a phase: all, unless one block of B is too large
    private final int phases;
    private final int groups; // of panels in a block of B
    private final int depth; // elements of the chain in a packed panel

    private final long unitBytes;
    private final long aBytes;
    private final long bBytes;
    private final long tileBytes;
    private final long slotBytes;
    private final long slotStride;
    private final int slots;

    private final Layout direct; // how A is read where it is not packed
    private final boolean adds;
    private final boolean continued;
    private final Warming warming;
    private final List<Call> calls;
    private volatile @Nullable Kernels kernels; // resolved by the first run, and again until they are hot
    private volatile boolean hot;

    /// The micro-kernels of a plan; those it never calls are the ones of ZERO.
    private record Kernels(
            MicroKernel packedZero,
            MicroKernel directZero,
            MicroKernel packedContinue,
            MicroKernel directContinue,
            MicroKernel packedAdd,
            MicroKernel directAdd) {
        MicroKernel of(boolean packed, Start start) {
            return switch (start) {
                case ZERO -> packed ? packedZero : directZero;
                case CONTINUE -> packed ? packedContinue : directContinue;
                case ADD -> packed ? packedAdd : directAdd;
            };
        }
    }

    /// `continued`: the chains go on from what C holds. `biasAlongRows`: the bias runs along m here, because the caller's problem was transposed. `warming`: FIRST makes the
    /// first run warm the micro-kernels alone and replace a slow one.
    BlockedMatmul(
            MatmulShape shape,
            Tiling tiling,
            Epilogue epilogue,
            boolean continued,
            boolean biasAlongRows,
            Warming warming,
            long phaseBytes) {
        this.shape = shape;
        this.tiling = tiling;
        this.epilogue = epilogue;
        this.continued = continued;
        this.warming = warming;
        math = RowMath.of(warming);
        biasRow = biasAlongRows ? 4 : 0;
        biasColumn = biasAlongRows ? 0 : 4;
        aRow = 4 * shape.a().row();
        aColumn = 4 * shape.a().column();
        bRow = 4 * shape.b().row();
        bColumn = shape.n() == 1 ? 4 : 4 * shape.b().column();
        cRow = 4 * shape.c().row();
        cColumn = shape.n() == 1 ? 4 : 4 * shape.c().column();
        mr = tiling.rows();
        nr = tiling.columns();
        mBlocks = ceilDiv(shape.m(), tiling.mBlock());
        nBlocks = ceilDiv(shape.n(), tiling.nBlock());
        segmentLength = shape.k() / shape.segments();
        kBlocks = Math.max(1, ceilDiv(segmentLength, tiling.kBlock()));
        kBlock = Math.max(1, ceilDiv(segmentLength, kBlocks));

        boolean readsA = aColumn == 4 || aRow == 4;
        packA = tiling.a() != Packing.NONE || !readsA;
        packB = tiling.b() == Packing.NONE && bColumn != 4 ? Packing.OWN : tiling.b();
        oneB = shape.oneB();
        staged = shape.segments() > 1 || cColumn != 4 || (epilogue.accumulate() && (kBlocks > 1 || epilogue.bias()));
        fusedMerge = shape.segments() > 1 && kBlocks == 1;

        int mPadded = ceilDiv(Math.min(tiling.mBlock(), shape.m()), mr) * mr;
        int nPadded = ceilDiv(Math.min(tiling.nBlock(), shape.n()), nr) * nr;
        groups = ceilDiv(nPadded / nr, GROUP);
        units = oneB ? nBlocks : nBlocks * shape.batches();
        long blockBytes = 4L * nPadded * kBlock;
        boolean inPieces = packB == Packing.SHARED
                && !staged
                && oneB
                && shape.batches() == 1
                && 4L * nPadded * shape.k() > 2 * phaseBytes;
        phaseBlocks = inPieces ? Math.clamp(phaseBytes / (blockBytes * nBlocks), 1, kBlocks) : kBlocks;
        depth = inPieces ? phaseBlocks * kBlock : shape.k();
        unitBytes = lines(4L * nPadded * depth);
        phaseUnits = packB == Packing.SHARED && !inPieces
                ? Math.clamp(phaseBytes / Math.max(1, unitBytes), 1, units)
                : units;
        phases = ceilDiv(units, phaseUnits) * ceilDiv(kBlocks, phaseBlocks);
        aBytes = lines(4L * kBlock * (packA ? mPadded : mr));
        bBytes = switch (packB) {
            case NONE -> lines(4L * kBlock * nr);
            case OWN -> lines(4L * kBlock * nPadded);
            case SHARED, READY -> 0;
        };
        if (packB == Packing.READY && !(oneB && (nBlocks == 1 || tiling.nBlock() % nr == 0))) {
            throw new IllegalArgumentException("matmul: B comes packed only for all batches and in whole panels of "
                    + nr + " columns, got blocks of " + tiling.nBlock());
        }
        tileBytes = lines(4L * mr * nr);
        slots = staged ? 32 - Integer.numberOfLeadingZeros(shape.segments()) : 0;
        slotStride = 4L * nPadded;
        slotBytes = lines(slotStride * mPadded);

        direct = aColumn == 4 ? Layout.ROWS : Layout.COLUMNS;
        adds = fusedMerge || epilogue.accumulate() && !staged;
        calls = findCalls();
    }

    private Kernels kernels() {
        var resolved = kernels;
        if (resolved != null && (hot || !isHot())) {
            return resolved;
        }
        synchronized (this) {
            if (warming == Warming.FIRST) {
                for (var call : calls()) {
                    MicroKernels.warm(tiling, call.layout, call.start);
                }
            }
            hot = isHot();
            resolved = new Kernels(
                    kernel(true, Start.ZERO),
                    kernel(false, Start.ZERO),
                    kernel(true, continues() ? Start.CONTINUE : Start.ZERO),
                    kernel(false, continues() ? Start.CONTINUE : Start.ZERO),
                    kernel(true, adds ? Start.ADD : Start.ZERO),
                    kernel(false, adds ? Start.ADD : Start.ZERO));
            kernels = resolved;
            return resolved;
        }
    }

    private boolean isHot() {
        if (warming != Warming.BESIDE) {
            return true;
        }
        for (var call : calls) {
            if (!MicroKernels.isHot(tiling, call.layout, call.start)) {
                return false;
            }
        }
        return true;
    }

    private MicroKernel kernel(boolean packed, Start start) {
        var layout = packed || packA ? Layout.COLUMNS : direct;
        return warming == Warming.BESIDE
                ? MicroKernels.soon(tiling, layout, start)
                : MicroKernels.of(tiling, layout, start);
    }

    private boolean continues() {
        return kBlocks > 1 || continued;
    }

    private static int ceilDiv(int a, int b) {
        return Math.ceilDiv(a, b);
    }

    private static long lines(long bytes) {
        return Math.ceilDiv(bytes, LINE) * LINE;
    }

    /// The micro-kernels this plan calls.
    List<Call> calls() {
        return calls;
    }

    private List<Call> findCalls() {
        var calls = new ArrayList<Call>();
        for (var start : Start.values()) {
            boolean used = switch (start) {
                case ZERO -> true;
                case CONTINUE -> continues();
                case ADD -> adds;
            };
            boolean edges = shape.m() % tiling.mBlock() % mr != 0 || Math.min(tiling.mBlock(), shape.m()) % mr != 0;
            if (used && (packA || edges || direct == Layout.COLUMNS)) {
                calls.add(new Call(Layout.COLUMNS, start));
            }
            if (used && !packA && direct == Layout.ROWS) {
                calls.add(new Call(Layout.ROWS, start));
            }
        }
        return calls;
    }

    record Call(Layout layout, Start start) {}

    private long workerBytes() {
        return aBytes + bBytes + tileBytes + slots * slotBytes;
    }

    private long sharedB() {
        return packB == Packing.SHARED ? Math.min(2, phases) * phaseUnits * unitBytes : 0;
    }

    long scratchBytes(int workers) {
        return sharedB() + workers * workerBytes() + LINE;
    }

    void run(TilePool pool, long a, long b, long c, long bias, long scratch) {
        long base = Math.ceilDiv(scratch, LINE) * LINE;
        var code = kernels();
        var now = phase(0, base);
        if (packB == Packing.SHARED) {
            var first = now;
            pool.run(first.packs, (tile, worker) -> packShared(b, first, tile));
        }
        for (int p = 1; p <= phases; p++) {
            var phase = now;
            var next = phase(p, base);
            int packs = packB == Packing.SHARED ? next.packs : 0;
            int tiles = phase.tasks + packs;
            pool.run(tiles, (tile, worker) -> {
                int before = (int) ((long) tile * packs / tiles); // packs among the tiles so far, spread evenly
                if ((int) ((tile + 1L) * packs / tiles) > before) {
                    packShared(b, next, before);
                } else {
                    task(code, a, b, c, bias, base, phase, tile - before, worker);
                }
            });
            now = next;
        }
    }

    /// What is computed between two barriers, while B for the next phase is packed.
    ///
    /// @param unit the first block of B, of `units`
    /// @param block the first piece of the chain, of `blocks`
    /// @param tasks blocks of C to compute
    /// @param packs pieces of B to pack for them
    /// @param buffer where B is packed
    private record Phase(int unit, int units, int block, int blocks, int tasks, int packs, long buffer) {}

    /// Phase `p`; one that is empty after the last.
    private Phase phase(int p, long base) {
        if (p >= phases) {
            return new Phase(0, 0, 0, 0, 0, 0, 0);
        }
        int steps = ceilDiv(kBlocks, phaseBlocks);
        int unit = p / steps * phaseUnits;
        int count = Math.min(phaseUnits, units - unit);
        int block = p % steps * phaseBlocks;
        int blocks = Math.min(phaseBlocks, kBlocks - block);
        return new Phase(
                unit,
                count,
                block,
                blocks,
                Math.multiplyExact(count * mBlocks, oneB ? shape.batches() : 1),
                count * shape.segments() * blocks * groups,
                base + p % 2 * (phaseUnits * unitBytes));
    }

    static long batchOffset(MatmulShape s, MatmulShape.Strides strides, int batch) {
        int b2 = batch % s.batch2();
        int rest = batch / s.batch2();
        int b1 = rest % s.batch1();
        int b0 = rest / s.batch1();
        return 4 * (b0 * strides.batch0() + b1 * strides.batch1() + b2 * strides.batch2());
    }

    private void packShared(long b, Phase phase, int pack) {
        int group = pack % groups;
        int rest = pack / groups;
        int block = phase.block + rest % phase.blocks;
        int segment = rest / phase.blocks % shape.segments();
        int index = rest / phase.blocks / shape.segments();
        int unit = phase.unit + index;
        int j = group * GROUP * nr;
        int j0 = unit % nBlocks * tiling.nBlock();
        int columns = Math.min(tiling.nBlock(), shape.n() - j0) - j;
        packPanels(
                b + batchOffset(shape, shape.b(), unit / nBlocks) + (j0 + j) * bColumn,
                phase.buffer + index * unitBytes + 4L * j * depth - 4L * nr * phase.block * kBlock,
                Math.min(columns, GROUP * nr),
                segment * segmentLength + block * kBlock,
                Math.min(kBlock, segmentLength - block * kBlock));
    }

    /// A piece of the chain of all panels that begin at column 0 of `from`.
    private void packPanels(long from, long to, int columns, int k0, int k) {
        for (int j = 0; j < columns; j += nr) {
            pack(
                    from + k0 * bRow + j * bColumn,
                    bColumn,
                    bRow,
                    to + 4L * j * depth + 4L * nr * k0,
                    Math.min(nr, columns - j),
                    nr,
                    k);
        }
    }

    /// Bytes of a B that comes packed.
    long readyBytes() {
        return lines(4L * ceilDiv(shape.n(), nr) * nr * shape.k());
    }

    /// Packs B for all plans with [Packing#READY] and panels as wide: panel by panel, each with the whole chain.
    void pack(TilePool pool, long b, long to) {
        pool.run(ceilDiv(shape.n(), nr), (tile, worker) -> {
            int j0 = tile * nr;
            packPanels(b + j0 * bColumn, to + 4L * j0 * shape.k(), Math.min(nr, shape.n() - j0), 0, shape.k());
        });
    }

    /// One panel: `to[p · width + w] = from[w · wStep + p · pStep]`, zero where w ≥ valid.
    private void pack(long from, long wStep, long pStep, long to, int valid, int width, int k) {
        if (valid == width && wStep == 4) {
            math.pack(from, pStep, to, width, k);
        } else if (valid == width && pStep == 4) {
            math.packTransposed(from, wStep, to, width, k);
        } else {
            for (int p = 0; p < k; p++) {
                long row = to + 4L * p * width;
                for (int w = 0; w < width; w++) {
                    Memory.putInt(row + 4L * w, w < valid ? Memory.getInt(from + w * wStep + p * pStep) : 0);
                }
            }
        }
    }

    /// Computes one block of C.
    private void task(Kernels code, long a, long b, long c, long bias, long base, Phase phase, int tile, int worker) {
        int rest = tile / mBlocks;
        int index = oneB ? rest / shape.batches() : rest;
        int unit = phase.unit + index;
        int batch = oneB ? rest % shape.batches() : unit / nBlocks;
        int i0 = tile % mBlocks * tiling.mBlock();
        int j0 = unit % nBlocks * tiling.nBlock();
        int rows = Math.min(tiling.mBlock(), shape.m() - i0);
        int columns = Math.min(tiling.nBlock(), shape.n() - j0);

        long aAt = a + batchOffset(shape, shape.a(), batch) + i0 * aRow;
        long bAt = switch (packB) {
            case SHARED -> phase.buffer + index * unitBytes - 4L * nr * phase.block * kBlock;
            case READY -> b + 4L * j0 * shape.k();
            case NONE, OWN -> b + batchOffset(shape, shape.b(), batch) + j0 * bColumn;
        };
        long cAt = c + batchOffset(shape, shape.c(), batch) + i0 * cRow + j0 * cColumn;
        long biasAt = bias + i0 * biasRow + j0 * biasColumn;
        long own = base + sharedB() + worker * workerBytes();

        if (staged) {
            long block = own + workerBytes() - slots * slotBytes;
            if (continued) {
                for (int i = 0; i < rows; i++) {
                    Epilogue.fetch(cAt + i * cRow, cColumn, block + i * slotStride, columns);
                }
            }
            stage(code, aAt, bAt, own, rows, columns, phase);
            epilogue.finish(math, block, slotStride, rows, columns, cAt, cRow, cColumn, biasAt, biasRow, biasColumn);
        } else {
            chain(code, aAt, bAt, own, rows, columns, 0, phase, cAt, cRow, epilogue.accumulate());
            if (epilogue.bias() && phase.block + phase.blocks == kBlocks) {
                for (int i = 0; i < rows; i++) {
                    Epilogue.addBias(math, cAt + i * cRow, columns, biasAt + i * biasRow, biasColumn);
                }
            }
        }
    }

    /// Leaves the tree over all segments in the first slot.
    private void stage(Kernels code, long a, long b, long own, int rows, int columns, Phase phase) {
        long slot0 = own + workerBytes() - slots * slotBytes;
        int top = 0; // slots in use
        for (int segment = 0; segment < shape.segments(); segment++) {
            int merges = Integer.numberOfTrailingZeros(~segment);
            if (fusedMerge && merges > 0) {
                chain(code, a, b, own, rows, columns, segment, phase, slot0 + (top - 1) * slotBytes, slotStride, true);
                merges--;
            } else {
                chain(code, a, b, own, rows, columns, segment, phase, slot0 + top * slotBytes, slotStride, false);
                top++;
            }
            for (; merges > 0; merges--) {
                top = merge(slot0, top, rows);
            }
        }
        while (top > 1) {
            top = merge(slot0, top, rows);
        }
    }

    private int merge(long slot0, int top, int rows) {
        long left = slot0 + (top - 2) * slotBytes;
        math.add(left, left + slotBytes, (int) (slotStride / 4) * rows);
        return top - 1;
    }

    /// One segment of the chain for one block of C, as far as the phase goes, K block by K block.
    private void chain(
            Kernels code,
            long a,
            long b,
            long own,
            int rows,
            int columns,
            int segment,
            Phase phase,
            long c,
            long cStride,
            boolean add) {
        for (int block = phase.block; block < phase.block + phase.blocks; block++) {
            int k0 = segment * segmentLength + block * kBlock;
            int kLength = Math.min(kBlock, segmentLength - block * kBlock);
            var start = block > 0 || continued ? Start.CONTINUE : add ? Start.ADD : Start.ZERO;
            panels(code, a + k0 * aColumn, b, own, rows, columns, k0, kLength, c, cStride, start);
        }
    }

    private void panels(
            Kernels code,
            long a,
            long b,
            long own,
            int rows,
            int columns,
            int k0,
            int k,
            long c,
            long cStride,
            Start start) {
        int lastRows = rows % mr;
        if (packA) {
            for (int i = 0; i < rows; i += mr) {
                pack(a + i * aRow, aRow, aColumn, own + 4L * i * k, Math.min(mr, rows - i), mr, k);
            }
        } else if (lastRows != 0) {
            pack(a + (rows - lastRows) * aRow, aRow, aColumn, own, lastRows, mr, k);
        }
        for (int j = 0; j < columns; j += nr) {
            int width = Math.min(nr, columns - j);
            long panel;
            long step = 4L * nr;
            if (packB == Packing.SHARED || packB == Packing.READY) {
                panel = b + 4L * j * depth + 4L * nr * k0;
            } else {
                panel = b + k0 * bRow + j * bColumn;
                if (packB == Packing.OWN || width < nr) {
                    long to = own + aBytes + (packB == Packing.OWN ? 4L * j * k : 0);
                    pack(panel, bColumn, bRow, to, width, nr, k);
                    panel = to;
                } else {
                    step = bRow;
                }
            }
            column(code, a, panel, step, own, rows, width, k, c + 4L * j, cStride, start);
        }
    }

    /// One panel of B against every panel of A.
    private void column(
            Kernels code,
            long a,
            long b,
            long bStep,
            long own,
            int rows,
            int width,
            int k,
            long c,
            long cStride,
            Start start) {
        int full = staged || width == nr ? rows / mr * mr : 0;
        var kernel = code.of(packA, start);
        long stride = packA ? 4L * mr : direct == Layout.ROWS ? aRow : aColumn;
        long panelStep = packA ? 4L * mr * k : mr * aRow;
        long panel = packA ? own : a;
        for (int i = 0; i < full; i += mr) {
            kernel.run(panel, stride, b, bStep, c + i * cStride, cStride, k);
            panel += panelStep;
        }
        if (full < rows) {
            edges(code, a, b, bStep, own, full, rows, width, k, c, cStride, start);
        }
    }

    /// Tiles that stick out over C: computed in a buffer; rows and columns beyond C are dropped.
    private void edges(
            Kernels code,
            long a,
            long b,
            long bStep,
            long own,
            int from,
            int rows,
            int width,
            int k,
            long c,
            long cStride,
            Start start) {
        long buffer = own + aBytes + bBytes;
        long bufferStride = 4L * nr;
        for (int i = from; i < rows; i += mr) {
            int height = Math.min(mr, rows - i);
            boolean packed = packA || height < mr;
            long panel = packA ? own + 4L * i * k : height < mr ? own : a + i * aRow;
            long stride = packed ? 4L * mr : direct == Layout.ROWS ? aRow : aColumn;
            long to = c + i * cStride;
            if (staged) {
                code.of(packed, start).run(panel, stride, b, bStep, to, cStride, k);
                continue;
            }
            if (start != Start.ZERO) {
                for (int r = 0; r < height; r++) {
                    math.copy(to + r * cStride, buffer + r * bufferStride, width);
                }
            }
            code.of(packed, start).run(panel, stride, b, bStep, buffer, bufferStride, k);
            for (int r = 0; r < height; r++) {
                math.copy(buffer + r * bufferStride, to + r * cStride, width);
            }
        }
    }
}
