package ingot.store;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// What a store on disk holds: tensors, the optimizer's moments of each, and the size of a chunk.
///
/// Every tensor is cut into chunks of `chunkElements` elements, the last is shorter. A row is one chunk of one tensor:
/// its weight (part 0), its moments (parts 1 to n) and its gradient, all with the same number of elements.
public record StoreLayout(List<StoredTensor> tensors, List<String> moments, int chunkElements) {
    /// Elements of a chunk where nothing else is said: 1 MiB.
    public static final int CHUNK_ELEMENTS = 262_144;

    private static final int ALIGNMENT = Blocks.SIZE / Float.BYTES;
    private static final int MAX_MOMENTS = 64;

    public StoreLayout {
        tensors = List.copyOf(tensors);
        moments = List.copyOf(moments);
        if (chunkElements <= 0 || chunkElements % ALIGNMENT != 0 || chunkElements > 1 << 28) {
            throw new IllegalArgumentException(
                    "a chunk has " + chunkElements + " elements, expected a multiple of " + ALIGNMENT + " up to 2^28");
        }
        Set<String> names = new HashSet<>();
        for (StoredTensor tensor : tensors) {
            if (!names.add(tensor.name())) {
                throw new IllegalArgumentException("two tensors are called " + tensor.name());
            }
        }
        Set<String> parts = new HashSet<>(List.of(WeightStore.Key.WEIGHT, WeightStore.Key.GRADIENT));
        for (String moment : moments) {
            if (!parts.add(moment)) {
                throw new IllegalArgumentException("two parts of a tensor are called " + moment);
            }
        }
        if (moments.size() > MAX_MOMENTS) {
            throw new IllegalArgumentException(moments.size() + " moments, a store holds at most " + MAX_MOMENTS);
        }
    }

    public int chunks(int tensor) {
        return Math.toIntExact(Math.ceilDiv(tensors.get(tensor).elements(), chunkElements));
    }

    /// Elements of one chunk.
    public int elements(int tensor, int chunk) {
        long left = tensors.get(tensor).elements() - start(chunk);
        if (chunk < 0 || left <= 0) {
            throw new IllegalArgumentException(
                    tensors.get(tensor).name() + " has " + chunks(tensor) + " chunks, no chunk " + chunk);
        }
        return (int) Math.min(chunkElements, left);
    }

    /// Position in its tensor of a chunk's first element.
    public long start(int chunk) {
        return (long) chunk * chunkElements;
    }

    public int index(String tensor) {
        for (int i = 0; i < tensors.size(); i++) {
            if (tensors.get(i).name().equals(tensor)) {
                return i;
            }
        }
        throw new IllegalArgumentException("no tensor " + tensor + " among " + tensors.size());
    }

    /// Weight and moments; the gradient is one more part.
    public int stateParts() {
        return 1 + moments.size();
    }

    /// What the part is called: `weight`, a moment, or `gradient`.
    public String part(int part) {
        return part == 0
                ? WeightStore.Key.WEIGHT
                : part == stateParts() ? WeightStore.Key.GRADIENT : moments.get(part - 1);
    }

    /// True if the tensor is never updated.
    public boolean frozen(int tensor) {
        return tensors.get(tensor).frozen();
    }

    /// Bytes of weights, moments and gradients of what is trained.
    public long stateBytes() {
        return elements(false) * Float.BYTES * (stateParts() + 1);
    }

    /// Bytes of the weights that are frozen: they are not in the file.
    public long frozenBytes() {
        return elements(true) * Float.BYTES;
    }

    /// Elements of all tensors that are frozen, or of those that are trained.
    public long elements(boolean frozen) {
        long elements = 0;
        for (StoredTensor tensor : tensors) {
            elements += tensor.frozen() == frozen ? tensor.elements() : 0;
        }
        return elements;
    }

    /// `wte chunk 3`
    String row(int tensor, int chunk) {
        return tensors.get(tensor).name() + " chunk " + chunk;
    }
}
