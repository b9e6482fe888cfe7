package ingot.cli;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.LongSupplier;

/// One run of the command in this process: what it printed and its exit status.
record Invocation(int status, String out, String err) {
    static Invocation of(String... arguments) {
        return of(System::nanoTime, Map.of(), arguments);
    }

    static Invocation of(LongSupplier nanoseconds, Map<String, String> environment, String... arguments) {
        var out = new ByteArrayOutputStream();
        var err = new ByteArrayOutputStream();
        var screen = new Screen(stream(out), stream(err), false, false, nanoseconds);
        int status = Main.run(screen, environment, arguments);
        return new Invocation(status, out.toString(StandardCharsets.UTF_8), err.toString(StandardCharsets.UTF_8));
    }

    static PrintStream stream(ByteArrayOutputStream bytes) {
        return new PrintStream(bytes, true, StandardCharsets.UTF_8);
    }
}
