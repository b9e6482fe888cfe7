package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CorpusTest {
    @TempDir
    Path folder;

    @Test
    void folderInTheOrderOfNames() throws IOException {
        write("b/Second.java", "class Second {}");
        write("a.java", "class A {}");
        write("b/First.java", "class First {}");
        write("b/notes.md", "no");
        write(".git/Hidden.java", "no");
        var corpus = Corpus.open(folder.toString(), List.of("**/*.java"));
        assertThat(corpus.documents())
                .containsExactly(
                        new Document("a.java", "class A {}"),
                        new Document("b/First.java", "class First {}"),
                        new Document("b/Second.java", "class Second {}"));
        assertThat(corpus.bytes()).isEqualTo(39);
    }

    @Test
    void withoutGlobsTextOnly() throws IOException {
        write("a.txt", "text");
        write("empty.txt", "");
        Files.write(folder.resolve("b.class"), new byte[] {(byte) 0xCA, (byte) 0xFE, 0, 0});
        assertThat(names(Corpus.open(folder.toString(), List.of()))).containsExactly("a.txt");
        assertThat(names(Corpus.open(folder.toString(), List.of("*.class")))).containsExactly("b.class");
    }

    @Test
    void oneFile() throws IOException {
        write("novel.txt", "It was a dark and stormy night.");
        var corpus = Corpus.open(folder.resolve("novel.txt").toString(), List.of("*.java"));
        assertThat(names(corpus)).containsExactly("novel.txt");
    }

    @Test
    void archivesAlsoNested() throws IOException {
        var tar = tar("package/data/mail.txt", "mail");
        var jar = zip("x/A.java", bytes("class A {}"), "lines.txt.gz", gzip(bytes("lines")), "inner.tgz", gzip(tar));
        Files.write(folder.resolve("lib.jar"), jar);
        Files.write(folder.resolve("change.log.gz"), gzip(bytes("changes")));
        assertThat(Corpus.open(folder.toString(), List.of()).documents())
                .containsExactly(
                        new Document("change.log", "changes"),
                        new Document("lib.jar!/inner.tgz!/package/data/mail.txt", "mail"),
                        new Document("lib.jar!/lines.txt", "lines"),
                        new Document("lib.jar!/x/A.java", "class A {}"));
        assertThat(names(Corpus.open(folder.resolve("lib.jar").toString(), List.of("**/*.java", "package/**"))))
                .containsExactly("x/A.java");
        assertThat(names(Corpus.open(folder.resolve("change.log.gz").toString(), List.of())))
                .containsExactly("change.log");
    }

    @Test
    void malformedUtf8IsReplacedAndReported() throws IOException {
        Files.write(folder.resolve("a.txt"), new byte[] {'a', (byte) 0xFF, 'b', (byte) 0xC3});
        write("b.txt", "genuine \uFFFD and ünïcödé 😀");
        var corpus = Corpus.open(folder.toString(), List.of());
        assertThat(corpus.documents().getFirst()).isEqualTo(new Document("a.txt", "a\uFFFDb\uFFFD", 2));
        assertThat(corpus.replacements()).containsExactly("a.txt (2)");
        assertThat(corpus.documents().getLast().bytes()).isEqualTo(Files.size(folder.resolve("b.txt")));
    }

    @Test
    void fingerprintSeesNamesAndTexts() {
        var corpus = corpus("a", "xy", "b", "z");
        assertThat(corpus.fingerprint())
                .isEqualTo(corpus("a", "xy", "b", "z").fingerprint())
                .hasSize(64);
        assertThat(corpus.fingerprint())
                .isNotEqualTo(corpus("a", "x", "b", "yz").fingerprint());
        assertThat(corpus.fingerprint())
                .isNotEqualTo(corpus("a", "xy", "c", "z").fingerprint());
        assertThat(corpus.fingerprint())
                .isNotEqualTo(corpus("ax", "y", "b", "z").fingerprint());
    }

    @Test
    void splitIsAFunctionOfSeedAndName() {
        var names = new ArrayList<String>();
        for (int i = 0; i < 400; i++) names.add("src/File" + i + ".java");
        var all = corpusOf(names);
        var split = all.split(1, 0.1);
        assertThat(split.heldOut().documents().size()).isBetween(20, 60);
        assertThat(Stream.concat(names(split.training()).stream(), names(split.heldOut()).stream()))
                .containsExactlyInAnyOrderElementsOf(names(all));
        // Fewer files: each of them stays on its side.
        var some = corpusOf(names.subList(0, 150)).split(1, 0.1);
        assertThat(names(split.heldOut())).containsAll(names(some.heldOut()));
        assertThat(names(split.training())).containsAll(names(some.training()));
        assertThat(names(all.split(2, 0.1).heldOut())).isNotEqualTo(names(split.heldOut()));
        // A larger fraction holds out more of the same.
        assertThat(names(all.split(1, 0.3).heldOut())).containsAll(names(split.heldOut()));
    }

    @Test
    void oneDocumentIsCutAtALine() {
        var text = "line one\n".repeat(100);
        var split = corpus("novel.txt", text).split(1, 0.1);
        var training = split.training().documents().getFirst().text();
        var heldOut = split.heldOut().documents().getFirst().text();
        assertThat(training + heldOut).isEqualTo(text);
        assertThat(training).endsWith("\n");
        assertThat(heldOut.length()).isBetween(80, 90);
    }

    @Test
    void splitThatLeavesNothing() {
        fails(
                () -> corpus("a", "x", "b", "y").split(1, 1e-9),
                "corpus: seed 1 and fraction 1.0E-9 hold out 0 of 2 "
                        + "documents, which leaves nothing to evaluate on; choose another fraction or seed");
        fails(
                () -> corpus("a", "x", "b", "y").split(1, 0.999999),
                "corpus: seed 1 and fraction 0.999999 hold out 2 of "
                        + "2 documents, which leaves nothing to train on; choose another fraction or seed");
        fails(
                () -> corpus("a", "x").split(1, 1.5),
                "held-out fraction 1.5: expected a number between 0 and 1, for example 0.1");
        fails(
                () -> corpus("a", "no line break").split(1, 0.5),
                "corpus: one document with 13 characters and no line "
                        + "break to cut it at, so nothing can be held out");
    }

    @Test
    void missingFolderNamesTheNearest() throws IOException {
        write("sources/A.java", "x");
        fails(
                () -> Corpus.open(folder.resolve("source/main").toString(), List.of()),
                folder.resolve("source/main") + ": no such file or folder; " + folder
                        + " exists, the nearest name there is sources");
    }

    @Test
    void noMatchNamesTheNearest() throws IOException {
        write("A.java", "x");
        write("b/B.java", "x");
        write("index.html", "x");
        fails(
                () -> Corpus.open(folder.toString(), List.of("**/*.jav")),
                folder + ": no file matches **/*.jav; 3 files "
                        + "are there (.java 2, .html 1), the nearest name is A.java");
    }

    @Test
    void emptyFolder() {
        fails(() -> Corpus.open(folder.toString(), List.of()), folder + ": there is no file in it");
    }

    @Test
    void onlyEmptyFiles() throws IOException {
        write("a.txt", "");
        fails(
                () -> Corpus.open(folder.toString(), List.of("*.txt")),
                folder + ": no text in 1 files (empty and binary "
                        + "files do not count); name the wanted ones with a glob such as **/*.txt");
        fails(() -> new Corpus("here", List.of()), "here: the corpus is empty");
    }

    @Test
    void unreadableFile() throws IOException {
        write("a.txt", "x");
        Files.createSymbolicLink(folder.resolve("b.txt"), folder.resolve("gone.txt"));
        fails(
                () -> Corpus.open(folder.toString(), List.of("*.txt")),
                folder + ": b.txt: cannot be read (no such file)");
    }

    @Test
    void linkThatLoops() throws IOException {
        write("d/a.txt", "x");
        Files.createSymbolicLink(folder.resolve("d/up"), folder);
        var corpus = Corpus.open(folder.toString(), List.of("*.txt"));
        assertThat(names(corpus)).containsExactly("d/a.txt");
    }

    @Test
    void damagedArchives() throws IOException {
        var good = zip("A.java", bytes("class A { /* a somewhat longer text, so that bytes can be hit */ }"));
        var path = folder.resolve("lib.jar");
        for (int cut = 1; cut < good.length; cut += 7) {
            Files.write(path, Arrays.copyOf(good, cut));
            assertThatThrownBy(() -> Corpus.open(path.toString(), List.of()))
                    .isInstanceOf(IngotException.class)
                    .hasMessageStartingWith(path + ": the archive is damaged (")
                    .hasMessageEndingWith("; delete it and fetch it again");
        }
        var flipped = good.clone();
        flipped[45] ^= 0x10; // inside the compressed data
        Files.write(path, flipped);
        assertThatThrownBy(() -> Corpus.open(path.toString(), List.of()))
                .isInstanceOf(IngotException.class)
                .hasMessageContaining("the archive is damaged (");

        Files.delete(path);
        Files.write(folder.resolve("log.gz"), Arrays.copyOf(gzip(bytes("some text of a log")), 20));
        fails(
                () -> Corpus.open(folder.toString(), List.of()),
                folder + ": the archive log.gz is damaged (it ends too early); delete it and fetch it again");
    }

    private void write(String name, String text) throws IOException {
        var file = folder.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    static Corpus corpus(String... namesAndTexts) {
        var documents = new ArrayList<Document>();
        for (int i = 0; i < namesAndTexts.length; i += 2) {
            documents.add(new Document(namesAndTexts[i], namesAndTexts[i + 1]));
        }
        return new Corpus("corpus", documents);
    }

    private static Corpus corpusOf(List<String> names) {
        return new Corpus(
                "corpus", names.stream().sorted().map(n -> new Document(n, n)).toList());
    }

    static List<String> names(Corpus corpus) {
        return corpus.documents().stream().map(Document::name).toList();
    }

    static void fails(org.assertj.core.api.ThrowableAssert.ThrowingCallable call, String message) {
        assertThatThrownBy(call).isInstanceOf(IngotException.class).hasMessage(message);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static byte[] gzip(byte[] content) throws IOException {
        var out = new ByteArrayOutputStream();
        try (var gzip = new GZIPOutputStream(out)) {
            gzip.write(content);
        }
        return out.toByteArray();
    }

    /// One file as `tar --format=ustar` writes it.
    static byte[] tar(String name, String text) {
        var archive = new byte[512 + (text.length() + 511) / 512 * 512 + 1024];
        put(archive, 0, name);
        put(archive, 124, "%011o".formatted(text.length()));
        put(archive, 148, "        0");
        put(archive, 257, "ustar");
        int sum = 0;
        for (int i = 0; i < 512; i++) sum += archive[i];
        put(archive, 148, "%06o".formatted(sum));
        archive[154] = 0;
        put(archive, 512, text);
        return archive;
    }

    private static void put(byte[] archive, int at, String text) {
        System.arraycopy(bytes(text), 0, archive, at, text.length());
    }

    static byte[] zip(Object... namesAndContents) throws IOException {
        var out = new ByteArrayOutputStream();
        try (var zip = new ZipOutputStream(out)) {
            for (int i = 0; i < namesAndContents.length; i += 2) {
                zip.putNextEntry(new ZipEntry((String) namesAndContents[i]));
                zip.write((byte[]) namesAndContents[i + 1]);
            }
        }
        return out.toByteArray();
    }
}
