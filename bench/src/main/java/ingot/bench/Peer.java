package ingot.bench;

import ingot.ir.IngotException;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// Another system in a process of its own that does one training step per line we send it.
final class Peer implements AutoCloseable {
    private final Process process;
    private final BufferedReader in;
    private final BufferedWriter out;

    private Peer(Process process) {
        this.process = process;
        this.in = process.inputReader();
        this.out = process.outputWriter();
    }

    /// libtorch through DJL; the first use fetches it with Maven and compiles the small program in `bench/peers`.
    static Peer libtorch(GptSize size, int threads) throws IOException {
        Path folder = Path.of(System.getProperty("ingot.home", "."), "bench", "peers");
        Path list = folder.resolve("target/classpath.txt");
        if (!Files.exists(folder.resolve("pom.xml"))) {
            throw new IngotException("bench: expected the peer's program in " + folder.toAbsolutePath()
                    + "; run ./ingot bench from the project's folder, or measure alone with --no-peer");
        }
        if (!Files.exists(list) || !Files.exists(folder.resolve("target/classes/ingot/peers/LibtorchGpt.class"))) {
            Sample.print("fetching libtorch through Maven (once, 112 MB) …");
            run(List.of("mvn", "-q", "-f", folder.toString(), "process-classes"));
        }
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx1g",
                "--enable-native-access=ALL-UNNAMED",
                "-Dai.djl.offline=true",
                "-DOPT_OUT_TRACKING=true",
                "-Dai.djl.pytorch.num_threads=" + threads,
                "-Dai.djl.pytorch.num_interop_threads=1",
                "-cp",
                folder.resolve("target/classes")
                        + java.io.File.pathSeparator
                        + Files.readString(list).strip(),
                "ingot.peers.LibtorchGpt"));
        for (int argument : new int[] {size.vocabulary, size.layers, size.width, size.heads, size.batch, size.time}) {
            command.add(Integer.toString(argument));
        }
        Peer peer = new Peer(new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start());
        String ready = peer.in.readLine();
        if (!"ready".equals(ready)) {
            peer.close();
            throw new IngotException(
                    "bench: libtorch did not start, it said '" + ready + "'; measure alone with --no-peer");
        }
        return peer;
    }

    /// Seconds of one training step.
    double step() throws IOException {
        out.write("step\n");
        out.flush();
        String line = in.readLine();
        if (line == null) {
            throw new IngotException("bench: the peer stopped unexpectedly");
        }
        return Long.parseLong(line.split(" ")[0]) / 1e9;
    }

    private static void run(List<String> command) throws IOException {
        try {
            Process process = new ProcessBuilder(command).inheritIO().start();
            if (process.waitFor() != 0) {
                throw new IngotException("bench: could not fetch libtorch with Maven; measure alone with --no-peer");
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
