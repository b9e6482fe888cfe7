package ingot.train;

import ingot.data.ImagePreparation;
import ingot.ir.IngotException;
import ingot.nn.ImageClassifier;
import ingot.store.Durable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// `preprocessor_config.json` of Hugging Face: how images become the numbers that a model reads.
final class ImageProcessor {
    static final String NAME = "preprocessor_config.json";

    private ImageProcessor() {}

    /// What a folder says about the images of a model; without the file bytes are spread around ½ ± ½.
    static ImagePreparation read(Path folder, ImageClassifier model) {
        ImagePreparation plain = ImagePreparation.of(model.channels(), model.imageSize());
        Path file = folder.resolve(NAME);
        if (!Files.exists(file)) {
            return plain;
        }
        JsonNode json = json(file);
        ImagePreparation fitted = plain.cropped(json.path("do_center_crop").asBoolean(false));
        List<Double> mean = numbers(file, json, "image_mean");
        List<Double> deviation = numbers(file, json, "image_std");
        boolean normalises = json.path("do_normalize").asBoolean(!mean.isEmpty());
        if (!normalises || mean.isEmpty() || deviation.isEmpty()) {
            return normalises ? fitted : fitted.normalised(List.of(0.0), List.of(1.0));
        }
        return fitted.normalised(mean, deviation);
    }

    /// Height and width of the images of a folder that was written here.
    static int size(Path folder) {
        Path file = folder.resolve(NAME);
        int size = json(file).path("size").path("height").asInt(0);
        if (size < 1) {
            throw new IngotException(file + ": size.height is missing");
        }
        return size;
    }

    private static JsonNode json(Path file) {
        try {
            return JsonMapper.shared().readTree(Files.readString(file));
        } catch (IOException | JacksonException e) {
            throw new IngotException(file + ": cannot be read: " + e.getMessage(), e);
        }
    }

    private static List<Double> numbers(Path file, JsonNode json, String key) {
        List<Double> numbers = new ArrayList<>();
        JsonNode found = json.path(key);
        for (JsonNode node : found.isArray() ? found : List.<JsonNode>of()) {
            if (!node.isNumber()) {
                throw new IngotException(file + ": " + key + " expected a list of numbers, got " + found);
            }
            numbers.add(node.asDouble());
        }
        return numbers;
    }

    static void write(Path folder, ImagePreparation preparation) {
        ObjectNode json = JsonMapper.shared().createObjectNode();
        json.put("do_resize", true);
        json.putObject("size").put("height", preparation.size()).put("width", preparation.size());
        json.put("resample", 2); // bilinear
        json.put("do_center_crop", preparation.crop());
        json.put("do_rescale", true);
        json.put("rescale_factor", 1 / 255.0);
        json.put("do_normalize", true);
        preparation.mean().forEach(json.putArray("image_mean")::add);
        preparation.deviation().forEach(json.putArray("image_std")::add);
        try {
            Durable.write(
                    folder.resolve(NAME),
                    JsonMapper.shared().writerWithDefaultPrettyPrinter().writeValueAsString(json));
        } catch (IOException e) {
            throw new IngotException("run: cannot write " + folder.resolve(NAME) + ": " + e.getMessage(), e);
        }
    }
}
