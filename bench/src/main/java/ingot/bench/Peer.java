package ingot.bench;

import ingot.ir.IngotException;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/// Another system in a process of its own that does one step per line we send it.
final class Peer implements AutoCloseable {
    private final Process process;
    private final BufferedReader in;
    private final BufferedWriter out;

    private Peer(Process process) {
        this.process = process;
        this.in = process.inputReader();
        this.out = process.outputWriter();
    }

    /// One training step of a GPT by libtorch through DJL.
    static Peer libtorch(GptSize size, int threads) throws IOException {
        List<String> sizes = IntStream.of(size.vocabulary, size.layers, size.width, size.heads, size.batch, size.time)
                .mapToObj(Integer::toString)
                .toList();
        return start(
                "libtorch",
                "LibtorchGpt",
                List.of(
                        "-Dai.djl.offline=true",
                        "-DOPT_OUT_TRACKING=true",
                        "-Dai.djl.pytorch.num_threads=" + threads,
                        "-Dai.djl.pytorch.num_interop_threads=1"),
                sizes);
    }

    /// One pass through an ONNX file by ONNX Runtime.
    ///
    /// @param inputs of each its name, type and sizes, such as `input_ids:i64:1,128`
    static Peer onnxRuntime(Path model, int threads, List<String> inputs) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(model.toString(), Integer.toString(threads)));
        arguments.addAll(inputs);
        return start("ONNX Runtime", "OnnxRuntimeModel", List.of(), arguments);
    }

    /// Starts a program of `bench/peers`; the first use fetches the peers with Maven and compiles the small programs.
    private static Peer start(String name, String program, List<String> settings, List<String> arguments)
            throws IOException {
        Path folder = Path.of(System.getProperty("ingot.home", "."), "bench", "peers");
        Path list = folder.resolve("target/classpath.txt");
        if (!Files.exists(folder.resolve("pom.xml"))) {
            throw new IngotException("bench: expected the peer's program in " + folder.toAbsolutePath()
                    + "; run ./ingot bench from the project's folder, or measure alone with --no-peer");
        }
        if (!Files.exists(list) || !Files.exists(folder.resolve("target/classes/ingot/peers/" + program + ".class"))) {
            Sample.print("fetching the peers through Maven (once, 200 MB) …");
            run(List.of("mvn", "-q", "-f", folder.toString(), "process-classes"));
        }
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx1g",
                "--enable-native-access=ALL-UNNAMED"));
        command.addAll(settings);
        command.addAll(List.of(
                "-cp",
                folder.resolve("target/classes")
                        + java.io.File.pathSeparator
                        + Files.readString(list).strip(),
                "ingot.peers." + program));
        command.addAll(arguments);
        Peer peer = new Peer(new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start());
        String ready = peer.in.readLine();
        if (!"ready".equals(ready)) {
            peer.close();
            throw new IngotException(
                    "bench: " + name + " did not start, it said '" + ready + "'; measure alone with --no-peer");
        }
        return peer;
    }

    /// Seconds of one step.
    double step() throws IOException {
        out.write("step\n");
        out.flush();
        String line = in.readLine();
        if (line == null) {
            throw new IngotException("bench: the peer stopped unexpectedly");
        }
        return Long.parseLong(line.split(" ")[0]) / 1e9;
    }

    /// What the last step computed, of the output with this name.
    float[] output(String name) throws IOException {
        Path file = Files.createTempFile("peer", ".f32");
        try {
            out.write("output " + name + " " + file + "\n");
            out.flush();
            String line = in.readLine();
            if (!"written".equals(line)) {
                throw new IngotException("bench: the peer has no output " + name + ": " + line);
            }
            FloatBuffer floats = ByteBuffer.wrap(Files.readAllBytes(file))
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .asFloatBuffer();
            float[] values = new float[floats.remaining()];
            floats.get(values);
            return values;
        } finally {
            Files.delete(file);
        }
    }

    private static void run(List<String> command) throws IOException {
        try {
            Process process = new ProcessBuilder(command).inheritIO().start();
            if (process.waitFor() != 0) {
                throw new IngotException("bench: could not fetch the peers with Maven; measure alone with --no-peer");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IngotException("bench: interrupted", e);
        }
    }

    @Override
    public void close() {
        try {
            out.close();
            if (!process.waitFor(5, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (IOException e) {
            process.destroyForcibly();
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
