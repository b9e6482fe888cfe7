package ingot.train;

import java.util.Set;
import java.util.TreeSet;

/// The pieces that a tensor of `elements` elements is worked on in: `size` elements each, the last one shorter.
record Chunks(long elements, int size) {
    interface Visitor {
        void visit(long start, int elements);
    }

    Chunks {
        if (size < 1) {
            throw new IllegalArgumentException("chunks: at least 1 element each expected, got " + size);
        }
    }

    void forEach(Visitor visitor) {
        for (long start = 0; start < elements; start += size) {
            visitor.visit(start, (int) Math.min(size, elements - start));
        }
    }

    /// The different sizes: one or two.
    Set<Integer> sizes() {
        Set<Integer> sizes = new TreeSet<>();
        if (elements >= size) {
            sizes.add(size);
        }
        if (elements % size != 0) {
            sizes.add((int) (elements % size));
        }
        return sizes;
    }
}
