package ingot.compiler;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// Places buffers with lifetimes in one piece of memory so that no two that live at the same time overlap.
///
/// Greedy by size: the largest buffer first, each at the tightest gap between those that share a moment of its life
/// with it (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). `lowerBound` is the
/// most bytes alive at once: no plan can be smaller.
public record BufferPlan(List<Life> lives, long[] offsets, long peak, long lowerBound) {
    private static final long LINE = 64;
    private static final long PAGE = 4096;
    private static final long LARGE = 1 << 16;

    /// A buffer of `bytes` that is written at step `first` and read until step `last`, both inclusive.
    public record Life(long bytes, int first, int last) {
        public Life {
            if (bytes < 0 || first > last) {
                throw new IllegalArgumentException("life of " + bytes + " bytes from " + first + " to " + last);
            }
        }

        boolean meets(Life other) {
            return first <= other.last && other.first <= last;
        }

        private long alignment() {
            return bytes >= LARGE || bytes % PAGE == 0 ? PAGE : LINE;
        }
    }

    public static BufferPlan of(List<Life> lives) {
        if (lives.size() > 1 << 24) {
            throw new IllegalArgumentException("too many buffers: " + lives.size());
        }
        Integer[] order = new Integer[lives.size()];
        Arrays.setAll(order, i -> i);
        Arrays.sort(order, (a, b) -> {
            int bySize = Long.compare(lives.get(b).bytes(), lives.get(a).bytes());
            return bySize != 0
                    ? bySize
                    : Integer.compare(lives.get(a).first(), lives.get(b).first());
        });
        long[] offsets = new long[lives.size()];
        Timeline timeline = new Timeline(lives, offsets);
        long peak = 0;
        for (int id : order) {
            Life life = lives.get(id);
            if (life.bytes() > 0) {
                offsets[id] = timeline.gap(life);
                timeline.add(id, life.bytes());
                peak = Math.max(peak, offsets[id] + life.bytes());
            }
        }
        return new BufferPlan(List.copyOf(lives), offsets, align(peak, LINE), lowerBound(lives));
    }

    /// Where buffer `id` lies, a multiple of 64; large buffers and those of whole pages lie at multiples of 4,096.
    public long offset(int id) {
        return offsets[id];
    }

    /// What is wrong with this plan, one line per finding; empty for a valid one.
    List<String> faults() {
        List<String> faults = new ArrayList<>();
        for (int i = 0; i < lives.size(); i++) {
            Life a = lives.get(i);
            if (offsets[i] % a.alignment() != 0 || offsets[i] < 0 || offsets[i] + a.bytes() > peak) {
                faults.add("buffer " + i + " " + a + " lies at " + offsets[i] + " of " + peak);
            }
            for (int j = 0; j < i; j++) {
                Life b = lives.get(j);
                if (a.bytes() > 0
                        && b.bytes() > 0
                        && a.meets(b)
                        && offsets[i] < offsets[j] + b.bytes()
                        && offsets[j] < offsets[i] + a.bytes()) {
                    faults.add("buffers " + j + " " + b + " at " + offsets[j] + " and " + i + " " + a + " at "
                            + offsets[i] + " overlap");
                }
            }
        }
        return faults;
    }

    private static long lowerBound(List<Life> lives) {
        int end = lives.stream().mapToInt(Life::last).max().orElse(-1) + 2;
        long[] change = new long[Math.max(0, end)];
        for (Life life : lives) {
            change[life.first()] += life.bytes();
            change[life.last() + 1] -= life.bytes();
        }
        long now = 0;
        long most = 0;
        for (long delta : change) {
            now += delta;
            most = Math.max(most, now);
        }
        return most;
    }

    private static long align(long offset, long to) {
        return (offset + to - 1) / to * to;
    }

    /// The buffers placed so far, in the order of their offsets: all of them, and those of each stretch of time.
    ///
    /// A short life looks only at the one or two stretches it touches, a long one at everything.
    private static final class Timeline {
        private static final int STRETCH = 128; // steps

        private final long[] offsets;
        private final long[] ends;
        private final int[] first;
        private final int[] last;
        private final Sorted all = new Sorted();
        private final Sorted[] stretches;

        Timeline(List<Life> lives, long[] offsets) {
            this.offsets = offsets;
            ends = new long[offsets.length];
            first = lives.stream().mapToInt(Life::first).toArray();
            last = lives.stream().mapToInt(Life::last).toArray();
            stretches = new Sorted[Arrays.stream(last).max().orElse(0) / STRETCH + 1];
            Arrays.setAll(stretches, i -> new Sorted());
        }

        void add(int id, long bytes) {
            ends[id] = offsets[id] + bytes;
            // Sorts by offset, a multiple of 64 below 2⁴⁵; the low bits name the buffer.
            long key = offsets[id] / LINE << 24 | id;
            all.add(key);
            for (int i = first[id] / STRETCH; i <= last[id] / STRETCH; i++) {
                stretches[i].add(key);
            }
        }

        /// The start of the tightest gap that takes `life`.
        long gap(Life life) {
            int from = life.first() / STRETCH;
            int to = life.last() / STRETCH;
            return to - from > 1 ? gap(life, all, all) : gap(life, stretches[from], stretches[to]);
        }

        private long gap(Life life, Sorted a, Sorted b) {
            long best = -1;
            long bestSpare = Long.MAX_VALUE;
            long end = 0;
            int i = 0;
            int j = a == b ? b.size : 0;
            while (i < a.size || j < b.size) {
                // The two lists as one; what is in both comes twice, which changes nothing.
                boolean fromA = j == b.size || (i < a.size && a.keys[i] <= b.keys[j]);
                int id = (int) ((fromA ? a.keys[i++] : b.keys[j++]) & 0xFFFFFF);
                if (first[id] <= life.last() && life.first() <= last[id]) {
                    long start = align(end, life.alignment());
                    long spare = offsets[id] - start - life.bytes();
                    if (spare >= 0 && spare < bestSpare) {
                        best = start;
                        bestSpare = spare;
                    }
                    end = Math.max(end, ends[id]);
                }
            }
            return best >= 0 ? best : align(end, life.alignment());
        }
    }

    private static final class Sorted {
        private long[] keys = new long[8];
        private int size;

        void add(long key) {
            int at = -Arrays.binarySearch(keys, 0, size, key) - 1;
            if (size == keys.length) {
                keys = Arrays.copyOf(keys, 2 * size);
            }
            System.arraycopy(keys, at, keys, at + 1, size - at);
            keys[at] = key;
            size++;
        }
    }
}
