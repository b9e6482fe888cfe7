package ingot.train;

import ingot.compiler.Backend;
import ingot.compiler.Buffer;
import ingot.compiler.Compiler;
import ingot.ir.Graph;
import ingot.ir.GraphBuilder;
import ingot.ir.Type;
import ingot.ir.Value;
import ingot.nn.Parameter;
import ingot.runtime.Executor;
import ingot.runtime.StageUpdates;
import ingot.store.RamStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// The root of the sum of the squares of all gradients, from chunks as they become ready.
///
/// Σ x over n elements is the contract's sum (docs/arithmetic.md §4) if n ≤ 4,096; else Σ over the sums of the whole
/// blocks of 4,096, plus the sum of the rest. Over the tensors it is one chain in declared order. So a tensor needs one
/// unfinished sum per power of 4,096, and the bits do not depend on the chunks. One caller at a time.
final class GradientNorm implements AutoCloseable {
    private static final int BLOCK = 4096;

    private final Backend backend;
    private final RamStore none = new RamStore();
    private final Map<String, Squares> tensors = new LinkedHashMap<>();
    private final Map<Type, Executor> executors = new HashMap<>();

    /// Compiles what chunks of `chunk` elements need, a multiple of 4,096; other sizes are compiled when they first
    /// come. Running statistics do not count.
    GradientNorm(List<Parameter> parameters, int chunk, Backend backend) {
        if (chunk % BLOCK != 0) {
            throw new IllegalArgumentException(
                    "gradient norm: chunks of a multiple of " + BLOCK + " elements expected, got " + chunk);
        }
        this.backend = backend;
        for (Parameter parameter : parameters) {
            if (!parameter.learned()) {
                continue;
            }
            long elements = parameter.type().shape().elements();
            tensors.put(parameter.name(), new Squares(elements));
            for (int size : new Chunks(elements, chunk).sizes()) {
                if (size >= BLOCK) {
                    executors.computeIfAbsent(blocks(size), this::compile);
                }
                if (size % BLOCK != 0) {
                    executors.computeIfAbsent(rest(size), this::compile);
                }
            }
        }
    }

    /// Adds the elements from `start`, a multiple of 4,096, of the gradient of `tensor`. Tensors and their chunks come
    /// in any order; only the last chunk may end inside a block. `chunk` is 64-byte aligned.
    void add(String tensor, long start, int elements, MemorySegment chunk) {
        Squares squares = tensors.get(tensor);
        if (squares == null) {
            throw new IllegalArgumentException(
                    "gradient norm: no tensor " + tensor + ", there are " + tensors.keySet());
        }
        if (chunk.byteSize() < 4L * elements || chunk.address() % 64 != 0) {
            throw new IllegalArgumentException("gradient norm: " + elements + " elements of " + tensor
                    + " expected at a multiple of 64 bytes, got " + chunk);
        }
        float[] sums = new float[Math.ceilDiv(elements, BLOCK)];
        if (elements >= BLOCK) {
            MemorySegment found = run(blocks(elements), chunk);
            MemorySegment.copy(found, ValueLayout.JAVA_FLOAT, 0, sums, 0, elements / BLOCK);
        }
        if (elements % BLOCK != 0) {
            long whole = 4L * (elements - elements % BLOCK);
            sums[sums.length - 1] = run(rest(elements), chunk.asSlice(whole)).get(ValueLayout.JAVA_FLOAT, 0);
        }
        squares.add(tensor, start, elements, sums);
    }

    /// The norm, when all of every tensor was added.
    float norm() {
        float sum = 0;
        for (Map.Entry<String, Squares> tensor : tensors.entrySet()) {
            sum += tensor.getValue().total(tensor.getKey());
        }
        return (float) Math.sqrt(sum);
    }

    /// Forgets what was added.
    void reset() {
        tensors.values().forEach(Squares::reset);
    }

    /// Bytes of off-heap memory held.
    long allocatedBytes() {
        return executors.values().stream().mapToLong(Executor::allocatedBytes).sum();
    }

    private MemorySegment run(Type type, MemorySegment gradient) {
        Executor executor = executors.computeIfAbsent(type, this::compile);
        executor.bind(new Buffer.Input("gradient"), gradient);
        executor.run(StageUpdates.NONE);
        return executor.output("squares");
    }

    private Executor compile(Type type) {
        return new Executor(Compiler.inference(squares(type)), backend, none, Set.of("gradient"));
    }

    private static Type blocks(int elements) {
        return Type.f32(elements / BLOCK, BLOCK);
    }

    private static Type rest(int elements) {
        return Type.f32(elements % BLOCK);
    }

    /// The sum of squares along the last axis.
    private static Graph squares(Type type) {
        GraphBuilder b = new GraphBuilder("squares");
        Value g = b.input("gradient", type);
        b.output("squares", b.sum(b.multiply(g, g), -1));
        return b.build();
    }

    @Override
    public void close() {
        executors.values().forEach(Executor::close);
        none.close();
    }

    /// The sum of the squares of one tensor in the making.
    private static final class Squares {
        private final long elements;
        private final Sum[] levels; // [k]: sums of whole blocks of 4096ᵏ⁺¹ elements that are not yet a block themselves
        private final Map<Long, Chunk> waiting = new HashMap<>(); // by first element
        private long added;
        private float rest;

        private record Chunk(int elements, float[] sums) {}

        Squares(long elements) {
            this.elements = elements;
            int depth = 0;
            for (long n = elements / BLOCK; n > 0; n /= BLOCK) {
                depth++;
            }
            levels = new Sum[depth];
            for (int k = 0; k < depth; k++) {
                levels[k] = new Sum();
            }
        }

        /// Takes the sums of a chunk's blocks, and the sum of the rest, as soon as all before them are there.
        void add(String tensor, long start, int count, float[] sums) {
            boolean last = start + count == elements;
            if (start < added
                    || start % BLOCK != 0
                    || start + count > elements
                    || count % BLOCK != 0 && !last
                    || waiting.putIfAbsent(start, new Chunk(count, sums)) != null) {
                throw new IllegalStateException("gradient norm: elements " + start + " to " + (start + count) + " of "
                        + tensor + " were added; expected whole blocks of " + BLOCK + ", or the rest, after " + added
                        + " of " + elements + ", each once");
            }
            for (Chunk next = waiting.remove(added); next != null; next = waiting.remove(added)) {
                for (int i = 0; i < next.elements() / BLOCK; i++) {
                    block(next.sums()[i]);
                }
                if (next.elements() % BLOCK != 0) {
                    rest = next.sums()[next.sums().length - 1];
                }
                added += next.elements();
            }
        }

        private void block(float sum) {
            float x = sum;
            for (Sum level : levels) {
                level.add(x);
                if (level.count < BLOCK) {
                    return;
                }
                x = level.value();
                level.clear();
            }
        }

        /// From the largest blocks down. A square is never −0, so an empty sum adds nothing.
        float total(String tensor) {
            if (added != elements) {
                throw new IllegalStateException(
                        "gradient norm: " + added + " of the " + elements + " elements of " + tensor + " were added");
            }
            float total = 0;
            for (int k = levels.length - 1; k >= 0; k--) {
                total += levels[k].value();
            }
            return total + rest;
        }

        void reset() {
            waiting.clear();
            added = 0;
            rest = 0;
            for (Sum level : levels) {
                level.clear();
            }
        }
    }

    /// Up to 4,096 numbers by the contract's sum: 16 lanes, then a tree.
    private static final class Sum {
        private final float[] lanes = new float[16];
        private final float[] tree = new float[16];
        private int count;

        void add(float x) {
            lanes[count++ % 16] += x;
        }

        float value() {
            System.arraycopy(lanes, 0, tree, 0, 16);
            for (int half = 8; half > 0; half /= 2) {
                for (int l = 0; l < half; l++) {
                    tree[l] += tree[l + half];
                }
            }
            return tree[0];
        }

        void clear() {
            Arrays.fill(lanes, 0);
            count = 0;
        }
    }
}
