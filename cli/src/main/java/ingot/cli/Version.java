package ingot.cli;

import ingot.ir.IngotException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;
import picocli.CommandLine;

/// What `ingot --version` prints.
final class Version implements CommandLine.IVersionProvider {
    /// The version of the build.
    static String text() {
        Properties properties = new Properties();
        try (InputStream stream = Version.class.getResourceAsStream("version.properties")) {
            if (stream != null) {
                properties.load(stream);
            }
        } catch (IOException e) {
            throw new IngotException("version: cannot read version.properties: " + e.getMessage(), e);
        }
        return properties.getProperty("version", "unknown");
    }

    @Override
    public String[] getVersion() {
        return new String[] {
            "ingot " + text(),
            "JDK " + Runtime.version() + ", " + System.getProperty("os.name") + " " + System.getProperty("os.arch")
        };
    }
}
