package ingot.train;

import ingot.formats.OnnxTextEncoder;
import ingot.ir.IngotException;
import ingot.nn.Network;
import ingot.store.BaseWeights;
import ingot.store.Safetensors;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// A text encoder in an ONNX file. Tuned, it is the same file beside `model.safetensors`, which has all weights under
/// the names of the file, and those of the head.
final class OnnxBase implements BaseModel {
    private final OnnxTextEncoder encoder;
    private final BaseWeights weights;

    private OnnxBase(OnnxTextEncoder encoder, BaseWeights weights) {
        this.encoder = encoder;
        this.weights = weights;
    }

    static OnnxBase open(Path file, FineTuneConfig.ModelConfig config, Path scratch) {
        OnnxTextEncoder encoder = OnnxTextEncoder.open(file, pooling(config.pooling()), config.dropout());
        try {
            SequencedMap<String, BaseWeights.Region> regions = encoder.regions();
            if (regions.keySet().equals(encoder.file().types().keySet())) {
                return new OnnxBase(encoder, BaseWeights.of(file, fingerprint(file), regions));
            }
            return new OnnxBase(encoder, BaseWeights.open(unpacked(encoder, scratch)));
        } catch (RuntimeException e) {
            encoder.close();
            throw e;
        }
    }

    static OnnxTextEncoder.Pooling pooling(FineTuneConfig.Pooling pooling) {
        return pooling == FineTuneConfig.Pooling.FIRST ? OnnxTextEncoder.Pooling.FIRST : OnnxTextEncoder.Pooling.MEAN;
    }

    /// The weights in a file of their own, where they are written in the file in a way that cannot be read in place.
    private static Path unpacked(OnnxTextEncoder encoder, Path scratch) {
        Path file = scratch.resolve("base.safetensors");
        if (!Files.exists(file)) {
            try {
                Files.createDirectories(scratch);
            } catch (IOException e) {
                throw new IngotException("run: cannot make the folder " + scratch + ": " + e.getMessage(), e);
            }
            Safetensors.write(
                    file, Map.of(), encoder.file().types(), encoder.file().contents());
        }
        return file;
    }

    private static String fingerprint(Path file) {
        try (InputStream in = Files.newInputStream(file)) {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] buffer = new byte[1 << 16];
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                digest.update(buffer, 0, n);
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (IOException e) {
            throw new IngotException("model: cannot read " + file + ": " + e.getMessage(), e);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    @Override
    public Network network() {
        return encoder;
    }

    @Override
    public String describe() {
        return "the ONNX text encoder " + encoder.path().getFileName();
    }

    @Override
    public Path folder() {
        Path parent = encoder.path().toAbsolutePath().getParent();
        return parent == null ? Path.of("") : parent;
    }

    @Override
    public BaseWeights weights() {
        return weights;
    }

    @Override
    public void save(Path to, Network model, List<String> labels, Safetensors.Contents contents) {
        TunedOnnx.save(encoder.path(), to, model, contents);
    }

    @Override
    public void close() {
        weights.close();
        encoder.close();
    }
}
