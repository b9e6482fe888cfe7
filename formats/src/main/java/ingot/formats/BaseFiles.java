package ingot.formats;

import ingot.ir.IngotException;
import ingot.store.BaseWeights;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// The weights that a training begins with, in place in the files they are in: safetensors, or what `torch.save` wrote.
public final class BaseFiles {
    private BaseFiles() {}

    /// Opens a safetensors file, a `.bin`, `.pt` or `.pth` file, or a folder with weights: safetensors before PyTorch's
    /// own, as [HuggingFace] does. Reads headers only.
    public static BaseWeights open(Path path) {
        if (Files.isRegularFile(path)) {
            return path.getFileName().toString().matches(".*\\.(bin|pt|pth)")
                    ? pickled(path, List.of(path))
                    : BaseWeights.open(path);
        }
        boolean safe = Files.exists(path.resolve(WeightFiles.SAFETENSORS))
                || Files.exists(path.resolve(WeightFiles.SAFETENSORS_INDEX));
        Path single = path.resolve(WeightFiles.PICKLED);
        if (!safe && Files.exists(single)) {
            return pickled(path, List.of(single));
        }
        Path index = path.resolve(WeightFiles.PICKLED_INDEX);
        if (!safe && Files.exists(index)) {
            return pickled(path, WeightFiles.shardFiles(index));
        }
        return BaseWeights.open(path);
    }

    private static BaseWeights pickled(Path path, List<Path> files) {
        SequencedMap<String, BaseWeights.Region> regions = new LinkedHashMap<>();
        StringBuilder fingerprint = new StringBuilder();
        for (Path file : files) {
            try (StateDict dict = StateDict.open(file)) {
                dict.regions().forEach((name, region) -> {
                    BaseWeights.Region other = regions.putIfAbsent(name, region);
                    if (other != null) {
                        throw new IngotException(
                                "base: both " + other.file() + " and " + file + " have a tensor " + name);
                    }
                });
                fingerprint
                        .append(file.getFileName())
                        .append(' ')
                        .append(dict.fingerprint())
                        .append("; ");
            }
        }
        return BaseWeights.of(path, fingerprint.toString(), regions);
    }
}
