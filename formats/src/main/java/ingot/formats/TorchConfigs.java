package ingot.formats;

import ingot.nn.LstmClassifier;
import ingot.nn.MobileNet;
import ingot.nn.ResNet;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/// config.json of models of PyTorch and torchvision themselves: the file describes what their code would say.
final class TorchConfigs {
    private static final double DEVIATION = 0.05;

    private TorchConfigs() {}

    static MobileNet mobilenet(ModelConfig c, Set<String> tensors) {
        return new MobileNet(
                c.number("width_mult", 1),
                c.size("image_size", 224),
                c.size("num_channels", 3),
                c.size("num_classes"),
                c.number("bn_eps", 1e-5),
                c.number("bn_momentum", 0.1),
                c.number("dropout", 0),
                DEVIATION);
    }

    static ResNet resnet(ModelConfig c, Set<String> tensors) {
        List<ResNet.Block> blocks = new ArrayList<>();
        if (!c.json().path("blocks").isArray()) {
            throw c.wrong("blocks", "a list of blocks with name, out and stride");
        }
        for (JsonNode node : c.json().path("blocks")) {
            if (!(node instanceof ObjectNode object)) {
                throw c.wrong("blocks", "a list of blocks with name, out and stride");
            }
            ModelConfig block = new ModelConfig(c.file(), "blocks.", object);
            blocks.add(new ResNet.Block(block.text("name"), block.size("out"), block.size("stride", 1)));
        }
        return new ResNet(
                c.size("image_size"),
                c.size("num_channels", 3),
                c.size("stem_channels"),
                c.size("stem_stride", 1),
                c.has("stem_pool"),
                blocks,
                c.size("num_classes"),
                c.number("bn_eps", 1e-5),
                c.number("bn_momentum", 0.1),
                DEVIATION);
    }

    static LstmClassifier lstm(ModelConfig c, Set<String> tensors) {
        return new LstmClassifier(
                c.size("vocab_size"),
                c.size("embedding_dim"),
                c.size("hidden_size"),
                Sizes.layers(c, "num_layers", tensors),
                c.flag("bidirectional", false),
                c.size("num_classes"),
                DEVIATION);
    }

    /// What `mobilenet` reads.
    static void write(ObjectNode json, MobileNet model) {
        json.putArray("architectures").add("MobileNetV2");
        json.put("model_type", "torchvision_mobilenet_v2");
        json.put("width_mult", model.widthFactor());
        json.put("image_size", model.imageSize());
        json.put("num_channels", model.channels());
        json.put("num_classes", model.labels());
        json.put("bn_eps", model.epsilon());
        json.put("bn_momentum", model.momentum());
        json.put("dropout", model.dropout());
    }

    /// What `resnet` reads.
    static void write(ObjectNode json, ResNet model) {
        json.putArray("architectures").add("SmallResNet");
        json.put("model_type", "small_resnet");
        json.put("image_size", model.imageSize());
        json.put("num_channels", model.channels());
        json.put("num_classes", model.labels());
        json.put("stem_channels", model.stem());
        json.put("stem_stride", model.stride());
        if (model.pool()) {
            json.putObject("stem_pool")
                    .put("type", "max")
                    .put("kernel", 3)
                    .put("stride", 2)
                    .put("padding", 1);
        }
        ArrayNode blocks = json.putArray("blocks");
        for (ResNet.Block block : model.blocks()) {
            blocks.addObject()
                    .put("name", block.name())
                    .put("out", block.channels())
                    .put("stride", block.stride());
        }
        json.put("bn_eps", model.epsilon());
        json.put("bn_momentum", model.momentum());
    }
}
