package ingot.train;

import ingot.data.Row;
import ingot.data.TextTokenizer;
import ingot.ir.IngotException;
import ingot.nn.LanguageModel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/// Makes lessons for a language model: texts to go on with, or answers to give.
///
/// A row is one of
/// - `{"messages": [{"role": "user", "content": …}, {"role": "assistant", "content": …}, …]}`: what the assistant says
///   is learned
/// - `{"prompt": …, "answer": …}`: the answer is learned
/// - a text (column `data.text`): all of it is learned
///
/// A conversation is written as `### role:`, a line break, the content, and an empty line; an answer ends with the
/// model's end of text.
record AnswerTeacher(FineTuneConfig config, TunedTrainee trainee) {
    private static final String MESSAGES = "messages";
    private static final String PROMPT = "prompt";
    private static final String ANSWER = "answer";
    private static final String ASSISTANT = "assistant";

    /// Ids, and which of them are learned.
    record Sequence(int[] ids, boolean[] learned) {}

    Task task(TunedFile file) {
        LanguageModel model = trainee.language();
        return AnswerLesson.task(model, file.length(), trainee.start(model), (step, executor) -> 0);
    }

    Lesson lesson(RunFolder folder, Callback callback) {
        LanguageModel model = trainee.language();
        ExampleRows rows = ExampleRows.read(config, callback, this::content, row -> "");
        Path file = trainee.tokenizer(folder, notice -> callback.onPhase(notice, 0, 0));
        int most = model.context() + 1; // the last token is only a target
        int wanted = config.length();
        if (wanted > model.context()) {
            throw new IngotException("configuration: length is " + wanted + ", the model has positions for "
                    + model.context() + " tokens");
        }
        try (TextTokenizer tokenizer = TextTokenizer.open(file)) {
            if (tokenizer.vocabularySize() > model.vocabulary()) {
                throw new IngotException("configuration: the tokenizer has " + tokenizer.vocabularySize()
                        + " tokens, the model knows " + model.vocabulary() + "; they do not belong together");
            }
            int[] end = trainee.model().endTokens().stream()
                    .limit(1)
                    .mapToInt(Integer::intValue)
                    .toArray();
            List<Row> all = rows.all();
            List<Sequence> sequences = new ArrayList<>();
            for (Row row : all) {
                sequences.add(sequence(row, tokenizer, end));
                callback.onPhase("encoding", sequences.size(), all.size());
            }
            int training = rows.training().rows().size();
            int length = wanted > 0 ? wanted : usual(sequences.subList(0, training), most) - 1;
            List<Sequence> learned = new ArrayList<>();
            List<Sequence> measured = new ArrayList<>();
            for (int i = 0; i < sequences.size(); i++) {
                List<Sequence> pieces = pieces(sequences.get(i), length + 1);
                (i < training ? learned : measured).addAll(pieces);
            }
            if (learned.isEmpty() || measured.isEmpty()) {
                throw new IngotException(config.data().source() + ": nothing is left to "
                        + (learned.isEmpty() ? "learn from" : "measure with")
                        + "; an example needs two tokens, one of them to be learned");
            }
            TunedFile tuned = new TunedFile(List.of(), length);
            return new AnswerLesson(
                    model,
                    length,
                    learned,
                    measured,
                    trainee.start(model),
                    config.train(),
                    TunedTrainee.fingerprints(rows, file, tuned),
                    new DataSummary.Examples(
                            "sequence",
                            List.of(new DataSummary.Group("", learned.size(), measured.size())),
                            length + " tokens",
                            0, // what is longer is several
                            trainee.model().describe()),
                    trainee.writer(model, tuned));
        }
    }

    private String content(Row row) {
        if (row.has(MESSAGES)) {
            return String.valueOf(row.values().get(MESSAGES));
        }
        return row.has(PROMPT) ? row.text(PROMPT) : row.text(config.data().text());
    }

    private Sequence sequence(Row row, TextTokenizer tokenizer, int[] end) {
        Builder builder = new Builder();
        builder.add(tokenizer.around().before(), false);
        if (row.has(MESSAGES)) {
            for (Row message : row.rows(MESSAGES)) {
                String role = message.text("role");
                boolean answer = role.equals(ASSISTANT);
                builder.add(tokenizer.plain("### " + role + ":\n"), false);
                builder.add(tokenizer.plain(message.text("content")), answer);
                if (answer) {
                    builder.add(end, true);
                }
                builder.add(tokenizer.plain("\n\n"), false);
            }
        } else if (row.has(PROMPT)) {
            builder.add(tokenizer.plain(row.text(PROMPT)), false);
            builder.add(tokenizer.plain(row.text(ANSWER)), true);
            builder.add(end, true);
        } else {
            builder.add(tokenizer.plain(row.text(config.data().text())), true);
            builder.add(end, true);
        }
        return builder.build();
    }

    /// A number of tokens that 95 % have at most.
    private static int usual(List<Sequence> sequences, int most) {
        int[] lengths =
                sequences.stream().mapToInt(s -> s.ids().length).sorted().toArray();
        int usual = lengths[Math.clamp((long) Math.ceil(0.95 * lengths.length) - 1, 0, lengths.length - 1)];
        return Math.clamp(Math.ceilDiv(Math.max(1, usual - 1), 16) * 16 + 1, 2, most);
    }

    /// Parts of at most `size` tokens that overlap by one, without those that teach nothing.
    static List<Sequence> pieces(Sequence whole, int size) {
        List<Sequence> pieces = new ArrayList<>();
        for (int from = 0; from < whole.ids().length - 1; from += size - 1) {
            int to = Math.min(whole.ids().length, from + size);
            boolean[] learned = Arrays.copyOfRange(whole.learned(), from, to);
            if (IntStream.range(1, learned.length).anyMatch(i -> learned[i])) {
                pieces.add(new Sequence(Arrays.copyOfRange(whole.ids(), from, to), learned));
            }
        }
        return pieces;
    }

    private static final class Builder {
        private int[] ids = new int[64];
        private boolean[] learned = new boolean[64];
        private int count;

        void add(int[] more, boolean learn) {
            if (count + more.length > ids.length) {
                ids = Arrays.copyOf(ids, 2 * (count + more.length));
                learned = Arrays.copyOf(learned, ids.length);
            }
            System.arraycopy(more, 0, ids, count, more.length);
            Arrays.fill(learned, count, count + more.length, learn);
            count += more.length;
        }

        Sequence build() {
            return new Sequence(Arrays.copyOf(ids, count), Arrays.copyOf(learned, count));
        }
    }
}
