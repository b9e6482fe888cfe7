package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A run whose state is on disk, and what `ingot store` says about it.
class StoreTest {
    private static final Pattern DIGEST = Pattern.compile("SHA-256 of weights, moments and losses: (\\p{XDigit}{64})");

    @TempDir
    Path folder;

    private String run;
    private Invocation trained;

    @BeforeEach
    void train() throws IOException {
        Path texts = Files.createDirectories(folder.resolve("texts"));
        for (int i = 0; i < 12; i++) {
            Files.writeString(texts.resolve("A" + i + ".java"), "public class A" + i + " {}\n".repeat(40));
        }
        run = folder.resolve("run").toString();
        Path config = Files.writeString(folder.resolve("a.yaml"), """
            run: '%s'
            threads: 1
            memory: 4GiB
            model: {layers: 1, width: 8, heads: 2, context: 16}
            data: {corpus: '%s', held-out: 0.3}
            tokenizer: {vocabulary: 260}
            train: {steps: 3, batch: 2, learning-rate: 1e-2}
            """.formatted(run, texts));
        trained = Invocation.of("train", config.toString());
        assertThat(trained.err()).isEmpty();
        assertThat(trained.status()).isZero();
    }

    private static String digest(Invocation run) {
        var found = DIGEST.matcher(run.out());
        assertThat(found.find()).as(run.out() + run.err()).isTrue();
        return found.group(1);
    }

    @Test
    void aSoundStore() {
        var inspected = Invocation.of("store", "inspect", run);
        assertThat(inspected.err()).isEmpty();
        assertThat(inspected.status()).isZero();
        assertThat(inspected.out())
                .contains(folder.resolve("run/store/state.ingot") + ", ", ", format 1")
                .contains("16 tensors", "weights, gradients, m, v", "3 steps, commit ", "model.width: 8")
                .containsPattern("transformer\\.wte\\.weight +f32\\[260, 8] +1 +3 +0 +36\\.0 KiB");

        var verified = Invocation.of("store", "verify", run);
        assertThat(verified).isEqualTo(new Invocation(0, "verifying ...\nAll is as it was written.\n", ""));
        assertThat(Invocation.of("store", "scrub", run)).isEqualTo(verified);
    }

    @Test
    void aFlippedBitIsFoundAndNamed() throws IOException {
        StoreFiles.flipWeight(folder.resolve("run"));
        var verified = Invocation.of("store", "verify", run);
        assertThat(verified.status()).isEqualTo(1);
        assertThat(verified.out())
                .containsPattern("damaged: transformer\\.\\S+ chunk 0 weight \\(generation 3, byte \\d+\\) is damaged: "
                        + "checksum \\p{XDigit}+, expected \\p{XDigit}+")
                .contains("1 damaged place. ");

        var scrubbed = Invocation.of("store", "scrub", run);
        assertThat(scrubbed.status()).isEqualTo(1);
        assertThat(scrubbed.out()).contains("1 damaged place without a second copy.");

        var again = Invocation.of("train", run);
        assertThat(again.status()).isEqualTo(1);
        assertThat(again.err()).containsPattern("error: store: transformer\\.\\S+ chunk 0 weight .* is damaged");
    }

    @Test
    void aDamagedSuperblockIsRepairedAndARunGoesOnWithoutIt() throws IOException {
        String digest = digest(trained);
        for (int slot = 0; slot < 2; slot++) {
            StoreFiles.flipSuperblock(folder.resolve("run"), slot);
            var verified = Invocation.of("store", "verify", run);
            assertThat(verified.status()).isEqualTo(1);
            assertThat(verified.out()).contains("damaged: superblock " + slot, "ingot store scrub " + run);

            var again = Invocation.of("train", run);
            assertThat(again.err()).contains("warning: store: ", "superblock " + slot + " is damaged", "going on from");
            assertThat(again.status()).isZero();
            assertThat(digest(again)).isEqualTo(digest);

            StoreFiles.flipSuperblock(folder.resolve("run"), slot);
            var scrubbed = Invocation.of("store", "scrub", run);
            assertThat(scrubbed.status()).isZero();
            assertThat(scrubbed.out()).contains("repaired: superblock " + slot, "1 place repaired.");
            assertThat(Invocation.of("store", "verify", run).status()).isZero();
        }
    }
}
