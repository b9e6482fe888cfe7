package ingot.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ingot.ir.IngotException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TableTest {
    @TempDir
    Path folder;

    private Table table(String name, String content, Table.Format format) throws IOException {
        Path file = folder.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, content);
        return Table.of(Corpus.open(folder.toString(), List.of()), format, Map.of());
    }

    @Test
    void csvHasAHeaderQuotesAndLineBreaks() throws IOException {
        Table table = table("a.csv", "\uFEFFtext, label\n\"one, \"\"two\"\"\nthree\",x\nfour,y\n", Table.Format.AUTO);
        assertThat(table.rows()).hasSize(2);
        assertThat(table.rows().get(0).text("text")).isEqualTo("one, \"two\"\nthree");
        assertThat(table.rows().get(1).text("label")).isEqualTo("y");
        assertThat(table.rows().get(1).where()).isEqualTo("a.csv line 4");
        assertThatThrownBy(() -> table.rows().get(1).text("lable"))
                .isInstanceOf(IngotException.class)
                .hasMessage("a.csv line 4: there is no column lable, did you mean label? the columns are text, label");
        assertThatThrownBy(() -> table.rows().get(1).number("text")).hasMessageContaining("expected a number");
    }

    @Test
    void tabsAndJsonLines() throws IOException {
        assertThat(table("a.tsv", "text\tlabel\nit's, \tx\n", Table.Format.AUTO)
                        .rows()
                        .getFirst()
                        .text("text"))
                .isEqualTo("it's, ");
        Files.delete(folder.resolve("a.tsv"));
        Table table = table(
                "b.jsonl",
                "{\"text\": \"a\", \"label\": 1, \"tags\": [\"B\", \"O\"]}\n\n{\"text\": 7, \"label\": 2.5}\n",
                Table.Format.AUTO);
        assertThat(table.rows()).hasSize(2);
        assertThat(table.rows().get(0).texts("tags")).containsExactly("B", "O");
        assertThat(table.rows().get(1).text("text")).isEqualTo("7");
        assertThat(table.rows().get(1).number("label")).isEqualTo(2.5f);
        assertThat(table.rows().get(1).where()).isEqualTo("b.jsonl line 3");
        assertThatThrownBy(() -> table.rows().get(0).text("tags")).hasMessageContaining("expected a text, got [");
        assertThatThrownBy(() -> table("b.jsonl", "{\"a\": 1}\n[2]", Table.Format.AUTO))
                .hasMessageContaining("b.jsonl line 2: expected a JSON object");
        assertThatThrownBy(() -> table("b.jsonl", "{\"a\": 1", Table.Format.AUTO))
                .hasMessageContaining("b.jsonl line 1: this is no JSON");
    }

    @Test
    void foldersAreLabels() throws IOException {
        table("ham/1.txt", "hello", Table.Format.AUTO);
        Table table = table("x/spam/2.txt", "buy", Table.Format.AUTO);
        assertThat(table.rows()).extracting(row -> row.text("label")).containsExactly("ham", "spam");
        Map<String, List<String>> globs = new LinkedHashMap<>();
        globs.put("bad", List.of("**/spam/**"));
        Corpus corpus = Corpus.open(folder.toString(), List.of());
        assertThat(Table.of(corpus, Table.Format.FILES, globs).rows())
                .singleElement()
                .satisfies(row -> assertThat(row.text("label")).isEqualTo("bad"));
        globs.put("worse", List.of("**/2.txt"));
        assertThatThrownBy(() -> Table.of(corpus, Table.Format.FILES, globs))
                .hasMessageContaining("fits the patterns of both bad and worse");
        globs.remove("worse");
        globs.put("bad", List.of("**/none/**"));
        assertThatThrownBy(() -> Table.of(corpus, Table.Format.FILES, globs)).hasMessageContaining("no file fits");
    }

    @Test
    void whatIsHeldOutIsAShareOfEveryClassAndDependsOnSeedAndContentOnly() {
        List<String> contents = new java.util.ArrayList<>();
        List<String> classes = new java.util.ArrayList<>();
        for (int i = 0; i < 100; i++) {
            contents.add("text " + i);
            classes.add(i % 10 == 0 ? "rare" : "often");
        }
        contents.add("text 0"); // twice
        classes.add("rare");
        HeldOut.Split split = HeldOut.of(contents, classes, 0.2, 7);
        assertThat(split.heldOut()).hasSizeBetween(20, 22);
        assertThat(java.util.Arrays.stream(split.heldOut())
                        .filter(i -> classes.get(i).equals("rare")))
                .hasSizeBetween(2, 3);
        boolean first = java.util.Arrays.stream(split.heldOut()).anyMatch(i -> i == 0);
        assertThat(java.util.Arrays.stream(split.heldOut()).anyMatch(i -> i == 100))
                .isEqualTo(first);
        HeldOut.Split reversed = HeldOut.of(contents.reversed(), classes.reversed(), 0.2, 7);
        assertThat(java.util.Arrays.stream(reversed.heldOut()).mapToObj(i -> contents.get(100 - i)))
                .containsExactlyInAnyOrderElementsOf(java.util.Arrays.stream(split.heldOut())
                        .mapToObj(contents::get)
                        .toList());
        assertThat(HeldOut.of(contents, classes, 0.2, 8).heldOut()).isNotEqualTo(split.heldOut());
        assertThat(HeldOut.of(List.of("a", "b", "c"), List.of("x", "x", "y"), 0.1, 1)
                        .training())
                .hasSize(2)
                .contains(2);
    }
}
