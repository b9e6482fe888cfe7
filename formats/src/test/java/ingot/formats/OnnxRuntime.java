package ingot.formats;

import ingot.ir.DType;
import ingot.ir.Tensor;
import java.lang.reflect.InvocationTargetException;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/// ONNX Runtime, if it is there: by reflection, because only the Maven profile `onnxruntime` fetches it.
final class OnnxRuntime implements AutoCloseable {
    private final Object environment;
    private final Object session;
    private final Class<?> tensors;

    static boolean isThere() {
        try {
            Class.forName("ai.onnxruntime.OrtEnvironment");
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    OnnxRuntime(Path model) {
        try {
            Class<?> environments = Class.forName("ai.onnxruntime.OrtEnvironment");
            tensors = Class.forName("ai.onnxruntime.OnnxTensor");
            environment = environments.getMethod("getEnvironment").invoke(null);
            session = environments.getMethod("createSession", String.class).invoke(environment, model.toString());
        } catch (ReflectiveOperationException e) {
            throw failed(e);
        }
    }

    /// F32 and I64 inputs; F32 outputs.
    Map<String, float[]> run(Map<String, Tensor> inputs, Iterable<String> outputs) {
        Map<String, Object> given = new HashMap<>();
        try {
            for (Map.Entry<String, Tensor> entry : inputs.entrySet()) {
                given.put(entry.getKey(), tensor(entry.getValue()));
            }
            Map<String, float[]> results = new HashMap<>();
            try (AutoCloseable found = (AutoCloseable)
                    session.getClass().getMethod("run", Map.class).invoke(session, given)) {
                for (String name : outputs) {
                    Object value = ((Optional<?>) found.getClass()
                                    .getMethod("get", String.class)
                                    .invoke(found, name))
                            .orElseThrow();
                    FloatBuffer buffer =
                            (FloatBuffer) tensors.getMethod("getFloatBuffer").invoke(value);
                    float[] copy = new float[buffer.remaining()];
                    buffer.get(copy);
                    results.put(name, copy);
                }
            }
            return results;
        } catch (ReflectiveOperationException e) {
            throw failed(e);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        } finally {
            given.values().forEach(OnnxRuntime::close);
        }
    }

    private Object tensor(Tensor value) throws ReflectiveOperationException {
        Class<?> environments = Class.forName("ai.onnxruntime.OrtEnvironment");
        long[] shape = IntStream.of(value.shape().dims()).asLongStream().toArray();
        int n = Math.toIntExact(value.shape().elements());
        if (value.type().dtype() == DType.F32) {
            return tensors.getMethod("createTensor", environments, FloatBuffer.class, long[].class)
                    .invoke(null, environment, FloatBuffer.wrap(value.toFloats()), shape);
        }
        LongBuffer numbers = LongBuffer.allocate(n);
        for (int i = 0; i < n; i++) {
            numbers.put(i, value.getLong(i));
        }
        return tensors.getMethod("createTensor", environments, LongBuffer.class, long[].class)
                .invoke(null, environment, numbers, shape);
    }

    private static RuntimeException failed(ReflectiveOperationException e) {
        return new IllegalStateException(e instanceof InvocationTargetException ? e.getCause() : e);
    }

    private static void close(Object closeable) {
        try {
            ((AutoCloseable) closeable).close();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void close() {
        close(session);
    }
}
