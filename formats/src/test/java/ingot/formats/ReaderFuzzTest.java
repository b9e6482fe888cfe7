package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;

import ingot.ir.IngotException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Damaged files: each opens, or fails with a message for the user; nothing else escapes.
class ReaderFuzzTest {
    private static final int ROUNDS = 400;

    @TempDir
    Path folder;

    @Test
    void pickles() throws IOException {
        byte[] whole;
        try (InputStream in = StateDictTest.class.getResourceAsStream("state-dict.pt")) {
            whole = in.readAllBytes();
        }
        byte[] pickle;
        try (ZipFile zip =
                new ZipFile(Files.write(folder.resolve("whole.pt"), whole).toFile())) {
            pickle = zip.getInputStream(zip.getEntry("state-dict/data.pkl")).readAllBytes();
        }
        SplittableRandom random = new SplittableRandom(1);
        int refused = 0;
        for (int round = 0; round < ROUNDS; round++) {
            Path file = folder.resolve("a.pt");
            try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(file))) {
                StateDictTest.store(zip, "archive/data.pkl", damaged(pickle, random));
            }
            refused += refused(() -> StateDict.open(file).close(), round);
        }
        assertThat(refused).isGreaterThan(ROUNDS / 2); // the storages are missing: what opens holds no tensors
        for (int round = 0; round < ROUNDS / 4; round++) {
            Path file = Files.write(folder.resolve("a.pt"), damaged(whole, random));
            refused(
                    () -> {
                        try (StateDict dict = StateDict.open(file)) {
                            dict.types().forEach((name, type) -> {
                                if (type.bytes() < 1 << 16) {
                                    dict.read(
                                            name,
                                            java.lang.foreign.MemorySegment.ofArray(new byte[(int) type.bytes()]));
                                }
                            });
                        }
                    },
                    round);
        }
    }

    @Test
    void folders() throws IOException {
        for (String name : new String[] {"llama", "bert-classification"}) {
            ReferenceCase reference = ReferenceCase.orSkip(name);
            byte[] config = Files.readAllBytes(reference.folder().resolve("config.json"));
            byte[] weights = Files.readAllBytes(reference.folder().resolve("model.safetensors"));
            int header = (int) weights[0] & 0xFF | (weights[1] & 0xFF) << 8;
            SplittableRandom random = new SplittableRandom(2);
            Files.write(folder.resolve("model.safetensors"), weights);
            for (int round = 0; round < ROUNDS / 4; round++) {
                Files.write(folder.resolve("config.json"), damagedText(config, random));
                refused(() -> HuggingFace.open(folder).close(), round);
            }
            Files.write(folder.resolve("config.json"), config);
            for (int round = 0; round < ROUNDS / 4; round++) {
                byte[] copy = weights.clone();
                for (int i = 0; i <= random.nextInt(3); i++) {
                    copy[random.nextInt(8 + header)] = (byte) random.nextInt(256);
                }
                Files.write(folder.resolve("model.safetensors"), copy);
                refused(() -> HuggingFace.open(folder).close(), round);
            }
        }
    }

    private static int refused(Runnable open, int round) {
        try {
            open.run();
            return 0;
        } catch (IngotException e) {
            assertThat(e.getMessage()).as("round " + round).isNotBlank();
            return 1;
        }
    }

    private static byte[] damaged(byte[] bytes, SplittableRandom random) {
        byte[] copy =
                random.nextInt(4) == 0 ? java.util.Arrays.copyOf(bytes, random.nextInt(bytes.length)) : bytes.clone();
        for (int i = 0; copy.length > 0 && i <= random.nextInt(4); i++) {
            copy[random.nextInt(copy.length)] = (byte) random.nextInt(256);
        }
        return copy;
    }

    /// Another number, another word, a piece gone or twice.
    private static byte[] damagedText(byte[] bytes, SplittableRandom random) {
        String text = new String(bytes, StandardCharsets.UTF_8);
        int from = random.nextInt(text.length());
        int to = Math.min(text.length(), from + random.nextInt(12));
        String[] pieces = {
            "",
            "-1",
            "null",
            "1e30",
            "\"x\"",
            "[]",
            "{}",
            "99999999999999999999",
            text.substring(from, to) + text.substring(from, to)
        };
        String damaged = random.nextBoolean()
                ? text.substring(0, from) + pieces[random.nextInt(pieces.length)] + text.substring(to)
                : text.replaceFirst(
                        ": [0-9.]+(?=,?\\s+\"" + (char) ('a' + random.nextInt(26)) + ")",
                        ": " + pieces[1 + random.nextInt(7)]);
        return damaged.getBytes(StandardCharsets.UTF_8);
    }
}
