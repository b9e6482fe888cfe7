package ingot.cli;

import ingot.train.Confusion;
import ingot.train.Evaluation;
import ingot.train.FineTuneConfig;
import ingot.train.ImageConfig;
import ingot.train.RunConfig;
import ingot.train.RunSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// What was asked and what was measured, in words.
final class Words {
    private Words() {}

    static String of(FineTuneConfig.Goal goal) {
        return goal.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    /// What a run teaches.
    static String of(RunSettings settings) {
        return switch (settings) {
            case FineTuneConfig tuned -> of(tuned.task());
            case ImageConfig _ -> "image classification";
            case RunConfig _ -> "language model from scratch";
        };
    }

    static String of(Evaluation evaluation) {
        return switch (evaluation) {
            case Evaluation.Text text ->
                String.format(
                        Locale.ROOT,
                        "%.3f bits per byte (loss %.3f, perplexity %s per token)",
                        text.bitsPerByte(),
                        text.loss(),
                        Quantity.digits(text.perplexity()));
            case Evaluation.Answers answers ->
                String.format(
                        Locale.ROOT,
                        "loss %.3f, perplexity %s per token",
                        answers.loss(),
                        Quantity.digits(answers.perplexity()));
            case Evaluation.Classes classes ->
                String.format(
                        Locale.ROOT,
                        "accuracy %.2f %%, F1 %.4f%s, MCC %.4f, loss %.4f",
                        100 * classes.confusion().accuracy(),
                        classes.confusion().f1(),
                        classes.confusion().labels().size() == 2
                                ? " (" + classes.confusion().labels().get(1) + ")"
                                : " (mean of the classes)",
                        classes.confusion().matthews(),
                        classes.loss());
            case Evaluation.Numbers numbers ->
                String.format(
                        Locale.ROOT,
                        "Spearman %.4f, Pearson %.4f, mean absolute error %.4f, loss %.4f",
                        numbers.spearman(),
                        numbers.pearson(),
                        numbers.absoluteError(),
                        numbers.loss());
            case Evaluation.Neighbours neighbours ->
                String.format(
                        Locale.ROOT,
                        "nearest of %d is right for %.2f %%, loss %.4f",
                        neighbours.pairs(),
                        100 * neighbours.recall(),
                        neighbours.loss());
        };
    }

    /// A table: rows are what it is, columns what it was taken for, then precision, recall and F1 of the class.
    static List<String> table(Confusion confusion) {
        int classes = confusion.labels().size();
        List<String> lines = new ArrayList<>();
        int width = confusion.labels().stream().mapToInt(String::length).max().orElse(0);
        int column = Math.max(8, width + 2);
        StringBuilder head = new StringBuilder(pad("", width));
        for (String label : confusion.labels()) {
            head.append(right(label, column));
        }
        lines.add(head + right("precision", 11) + right("recall", 9) + right("F1", 9));
        for (int i = 0; i < classes; i++) {
            StringBuilder line = new StringBuilder(pad(confusion.labels().get(i), width));
            for (int j = 0; j < classes; j++) {
                line.append(right(Quantity.count(confusion.counts()[i][j]), column));
            }
            lines.add(line
                    + String.format(
                            Locale.ROOT,
                            "%11.4f%9.4f%9.4f",
                            confusion.precision(i),
                            confusion.recall(i),
                            confusion.f1(i)));
        }
        return lines;
    }

    private static String pad(String text, int width) {
        return text + " ".repeat(width - text.length());
    }

    private static String right(String text, int width) {
        return " ".repeat(Math.max(1, width - text.length())) + text;
    }
}
