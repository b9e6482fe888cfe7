package ingot.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ingot.cpu.TilePool;
import ingot.ir.IngotException;
import ingot.ir.Interpreter;
import ingot.ir.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The ONNX project's own backend tests, from the Debian package `libonnx-testdata`.
///
/// `docs/onnx-coverage.md` says which pass; `-Dingot.write.coverage=true` writes it anew.
class OnnxConformanceTest {
    private static final Path DATA = Path.of("/usr/share/libonnx-testdata/data");
    private static final double NEEDED = 0.95;

    private static final Map<OnnxCase, OnnxCase.Passed> PASSED = new LinkedHashMap<>();
    private static final Map<OnnxCase, String> FAILED = new LinkedHashMap<>();

    @BeforeAll
    static void run() {
        boolean there = Files.isDirectory(DATA);
        if (!there) {
            System.err.println("SKIPPED: no ONNX test data; apt-get install libonnx-testdata");
        }
        assumeTrue(there, "no ONNX test data; apt-get install libonnx-testdata");
        for (OnnxCase each : OnnxCase.all(DATA)) {
            try {
                PASSED.put(each, each.run());
            } catch (OnnxCase.Failed | IngotException e) {
                FAILED.put(each, OnnxCoverage.reason(each, e));
            }
        }
    }

    @Test
    void nodeCasesPass() {
        long passed =
                PASSED.keySet().stream().filter(c -> c.folder().equals("node")).count();
        long failed =
                FAILED.keySet().stream().filter(c -> c.folder().equals("node")).count();
        assertThat(passed / (double) (passed + failed)).as(FAILED.toString()).isGreaterThanOrEqualTo(NEEDED);
    }

    @Test
    void whatTheDocumentSaysPassesDoes() throws IOException {
        Path document = OnnxCoverage.document();
        if (Boolean.getBoolean("ingot.write.coverage")) {
            Files.writeString(document, OnnxCoverage.text(PASSED.keySet(), FAILED));
        }
        List<String> listed = OnnxCoverage.failures(Files.readString(document));
        Map<String, String> unexpected = new TreeMap<>();
        FAILED.forEach((each, reason) -> {
            if (!listed.contains(each.name())) {
                unexpected.put(each.name(), reason);
            }
        });
        assertThat(unexpected).as("failing, but not listed in " + document).isEmpty();
    }

    /// import → export → import: the same bits again.
    @Test
    void whatIsWrittenAgainHasTheSameBits(@TempDir Path folder) {
        Map<String, String> wrong = new TreeMap<>();
        Map<String, String> refused = new TreeMap<>();
        Path file = folder.resolve("again.onnx");
        PASSED.forEach((each, passed) -> {
            try {
                OnnxWriter.write(file, passed.graph(), OnnxRun.source(passed.weights()));
            } catch (IngotException e) {
                refused.put(each.name(), e.getMessage());
                return;
            }
            try (OnnxImport again = OnnxImport.of(OnnxModel.open(file), OnnxBinding.NONE)) {
                Map<String, Tensor> found = Interpreter.run(again.graph(), passed.inputs(), OnnxRun.weights(again));
                passed.outputs().forEach((name, expected) -> {
                    if (!found.get(name).sameBits(expected)) {
                        wrong.put(each.name(), name + " differs");
                    }
                });
            } catch (RuntimeException e) {
                wrong.put(each.name(), e.toString());
            }
        });
        assertThat(wrong).isEmpty();
        assertThat(refused).isEmpty();
    }

    /// Compiled for the CPU: the bits of the interpreter.
    @Test
    void compiledCodeHasTheSameBits() {
        List<String> wrong = new ArrayList<>();
        try (TilePool pool = new TilePool(1)) {
            PASSED.forEach((each, passed) -> {
                boolean trivial = passed.graph().values().stream()
                        .allMatch(v -> v.op().operands().isEmpty());
                if (trivial) {
                    return; // all of it was computed at import
                }
                try {
                    Map<String, Tensor> inputs = new LinkedHashMap<>();
                    passed.graph().inputs().forEach(v -> {
                        String name = ((ingot.ir.Op.Input) v.op()).name();
                        inputs.put(name, passed.inputs().get(name));
                    });
                    Map<String, Tensor> found = OnnxRun.compiled(passed.graph(), inputs, passed.weights(), pool);
                    passed.outputs().forEach((name, expected) -> {
                        if (!found.get(name).sameBits(expected)) {
                            wrong.add(each.name() + ": " + name + " differs");
                        }
                    });
                } catch (RuntimeException e) {
                    wrong.add(each.name() + ": " + e);
                }
            });
        }
        assertThat(wrong).isEmpty();
    }
}
