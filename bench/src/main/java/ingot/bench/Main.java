package ingot.bench;

import java.io.IOException;

/// The `ingot bench` command.
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws IOException {
        org.openjdk.jmh.Main.main(arguments);
    }
}
