package ingot.peers;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/// An ONNX file in ONNX Runtime: `OnnxRuntimeModel FILE THREADS NAME:TYPE:SIZES…`.
///
/// Says `ready`, then for a line `step` runs the model once and says how many nanoseconds it took; for `output NAME
/// FILE` writes that output of the last step as little-endian floats. Inputs have the values of `ingot bench infer`.
public final class OnnxRuntimeModel {
    private OnnxRuntimeModel() {}

    public static void main(String[] arguments) throws OrtException, IOException {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        OrtSession.SessionOptions options = new OrtSession.SessionOptions();
        options.setIntraOpNumThreads(Integer.parseInt(arguments[1]));
        options.setInterOpNumThreads(1);
        Map<String, OnnxTensor> inputs = new LinkedHashMap<>();
        for (String input : Arrays.copyOfRange(arguments, 2, arguments.length)) {
            String[] parts = input.split(":");
            inputs.put(parts[0], tensor(environment, parts[0], parts[1], parts.length < 3 ? "" : parts[2]));
        }
        try (OrtSession session = environment.createSession(arguments[0], options)) {
            System.out.println("ready");
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            OrtSession.Result last = null;
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("output") && last != null) {
                    write((OnnxTensor) last.get(words[1]).orElseThrow(), Path.of(words[2]));
                    System.out.println("written");
                    continue;
                }
                if (last != null) {
                    last.close();
                }
                long start = System.nanoTime();
                last = session.run(inputs);
                System.out.println(System.nanoTime() - start);
            }
        }
    }

    private static OnnxTensor tensor(OrtEnvironment environment, String name, String type, String sizes)
            throws OrtException {
        long[] shape = sizes.isEmpty()
                ? new long[0]
                : Arrays.stream(sizes.split(",")).mapToLong(Long::parseLong).toArray();
        int count = (int) Arrays.stream(shape).reduce(1, (a, b) -> a * b);
        if (type.equals("i64")) {
            LongBuffer values = LongBuffer.allocate(count);
            for (int i = 0; i < count; i++) {
                values.put(i, name.contains("mask") ? 1 : name.contains("type") ? 0 : 1 + i * 7919L % 1000);
            }
            return OnnxTensor.createTensor(environment, values, shape);
        }
        FloatBuffer values = FloatBuffer.allocate(count);
        for (int i = 0; i < count; i++) {
            values.put(i, i * 7919L % 1000 / 1000f);
        }
        return OnnxTensor.createTensor(environment, values, shape);
    }

    private static void write(OnnxTensor tensor, Path file) throws IOException {
        FloatBuffer floats = tensor.getFloatBuffer();
        ByteBuffer bytes = ByteBuffer.allocate(4 * floats.remaining()).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asFloatBuffer().put(floats);
        Files.write(file, bytes.array());
    }
}
