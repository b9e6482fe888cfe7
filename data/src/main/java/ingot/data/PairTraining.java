package ingot.data;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.PriorityQueue;

/// One run of byte-pair training: the distinct words with their counts, and for every pair how often it occurs and
/// in which words. A merge visits only those words; the heap holds each pair once, with a count that may be too high
/// and is put right when the pair comes up. So a merge costs as much as it changes, not as much as the corpus.
///
/// Among equally frequent pairs the one with the smaller ids wins, left before right, as in Hugging Face tokenizers.
final class PairTraining {
    private final Progress progress;
    private final Word[] words;
    private final Map<Long, Pair> pairs = new HashMap<>();
    private final PriorityQueue<Candidate> heap = new PriorityQueue<>();
    private final List<String> vocabulary = new ArrayList<>();

    private static final class Word {
        int[] ids;
        int length;
        final long count;

        Word(int[] ids, long count) {
            this.ids = ids;
            this.length = ids.length;
            this.count = count;
        }
    }

    private static final class Pair {
        long count;
        int[] words = new int[2];
        int size;

        void seenIn(int word) {
            if (size > 0 && words[size - 1] == word) return;
            if (size == words.length) words = Arrays.copyOf(words, 2 * size);
            words[size++] = word;
        }
    }

    private record Candidate(long pair, long count) implements Comparable<Candidate> {
        @Override
        public int compareTo(Candidate other) {
            int byCount = Long.compare(other.count, count);
            return byCount != 0 ? byCount : Long.compare(pair, other.pair);
        }
    }

    PairTraining(Corpus corpus, Progress progress) {
        this.progress = progress;
        vocabulary.add(BytePairs.END_OF_TEXT);
        var ids = new int[256];
        for (int b : ByteAlphabet.bytesInOrder()) {
            ids[b] = vocabulary.size();
            vocabulary.add(String.valueOf(ByteAlphabet.character(b)));
        }
        this.words = words(corpus, ids);
        for (int w = 0; w < words.length; w++) {
            var word = words[w];
            for (int i = 0; i + 1 < word.length; i++) {
                var pair = pairs.computeIfAbsent(key(word.ids[i], word.ids[i + 1]), k -> new Pair());
                pair.count += word.count;
                pair.seenIn(w);
            }
        }
        pairs.forEach((key, pair) -> heap.add(new Candidate(key, pair.count)));
    }

    /// The distinct words in the order of their first occurrence.
    private static Word[] words(Corpus corpus, int[] ids) {
        var counts = new LinkedHashMap<String, long[]>();
        for (var document : corpus.documents()) {
            var text = document.text();
            Words.split(text, (from, to) -> counts.computeIfAbsent(text.substring(from, to), w -> new long[1])[0]++);
        }
        return counts.entrySet().stream()
                .map(e -> {
                    var bytes = e.getKey().getBytes(StandardCharsets.UTF_8);
                    var word = new int[bytes.length];
                    for (int i = 0; i < word.length; i++) word[i] = ids[bytes[i] & 0xFF];
                    return new Word(word, e.getValue()[0]);
                })
                .toArray(Word[]::new);
    }

    BytePairs train(int size) {
        var merges = new ArrayList<BytePairs.Merge>();
        var known = new HashSet<>(vocabulary);
        int target = size - BytePairs.BASE;
        while (vocabulary.size() < size) {
            var best = heap.poll();
            if (best == null) break;
            long count = Objects.requireNonNull(pairs.get(best.pair)).count;
            if (count < best.count) {
                if (count > 1) heap.add(new Candidate(best.pair, count));
                continue;
            }
            if (count < 2) break;
            int left = (int) (best.pair >>> 32);
            int right = (int) best.pair;
            var token = vocabulary.get(left) + vocabulary.get(right);
            if (!known.add(token)) continue; // spelled by an earlier merge already
            merges.add(new BytePairs.Merge(vocabulary.get(left), vocabulary.get(right)));
            int merged = vocabulary.size();
            vocabulary.add(token);
            merge(best.pair, left, right, merged);
            if (merges.size() % 64 == 0) progress.at(merges.size(), target);
        }
        progress.at(merges.size(), Math.min(target, merges.size()));
        return new BytePairs(vocabulary, merges);
    }

    private void merge(long key, int left, int right, int merged) {
        var pair = Objects.requireNonNull(pairs.remove(key));
        var born = new HashMap<Long, Pair>();
        for (int i = 0; i < pair.size; i++) merge(pair.words[i], left, right, merged, born);
        born.forEach((k, p) -> {
            pairs.put(k, p);
            heap.add(new Candidate(k, p.count));
        });
    }

    private void merge(int w, int left, int right, int merged, Map<Long, Pair> born) {
        var word = words[w];
        int[] ids = word.ids;
        if (!contains(word, left, right)) return;
        for (int i = 0; i + 1 < word.length; i++) {
            var old = pairs.get(key(ids[i], ids[i + 1]));
            if (old != null) old.count -= word.count;
        }
        int to = 0;
        for (int from = 0; from < word.length; from++) {
            if (from + 1 < word.length && ids[from] == left && ids[from + 1] == right) {
                ids[to++] = merged;
                from++;
            } else {
                ids[to++] = ids[from];
            }
        }
        word.length = to;
        for (int i = 0; i + 1 < to; i++) {
            boolean fresh = ids[i] == merged || ids[i + 1] == merged;
            if (fresh) {
                var pair = born.computeIfAbsent(key(ids[i], ids[i + 1]), k -> new Pair());
                pair.count += word.count;
                pair.seenIn(w);
            } else {
                var pair = pairs.get(key(ids[i], ids[i + 1]));
                if (pair != null) pair.count += word.count;
            }
        }
    }

    private static boolean contains(Word word, int left, int right) {
        for (int i = 0; i + 1 < word.length; i++) {
            if (word.ids[i] == left && word.ids[i + 1] == right) return true;
        }
        return false;
    }

    private static long key(int left, int right) {
        return (long) left << 32 | right;
    }
}
