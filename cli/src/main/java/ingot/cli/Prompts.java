package ingot.cli;

import ingot.data.Corpus;
import ingot.data.Document;
import ingot.train.RunConfig;
import java.util.List;
import java.util.stream.Stream;

/// What a fresh model is asked to continue.
final class Prompts {
    private static final List<String> JAVA =
            List.of("    public static boolean is", "    /**\n     * Returns the", "        for (int i = 0; i < ");
    private static final int WORDS = 6;
    private static final int COUNT = 3;

    private Prompts() {}

    /// Beginnings of Java code when most of the corpus is that, else the first words of held-out documents.
    static List<String> of(RunConfig config) {
        Corpus corpus = Corpus.open(config.data().corpus(), config.data().include());
        long java = corpus.documents().stream()
                .filter(document -> document.name().endsWith(".java"))
                .count();
        if (2 * java > corpus.documents().size()) {
            return JAVA;
        }
        List<Document> heldOut = corpus.split(
                        config.train().seed(), config.data().heldOut())
                .heldOut()
                .documents();
        int stride = Math.max(1, heldOut.size() / COUNT);
        List<String> prompts = Stream.iterate(0, i -> i < heldOut.size(), i -> i + stride)
                .map(i -> firstWords(heldOut.get(i).text()))
                .filter(words -> !words.isEmpty())
                .distinct()
                .limit(COUNT)
                .toList();
        return prompts.isEmpty() ? List.of("The") : prompts;
    }

    static String firstWords(String text) {
        return String.join(
                " ",
                Stream.of(text.strip().split("\\s+", WORDS + 1)).limit(WORDS).toList());
    }
}
