package ingot.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class QuantityTest {
    @ParameterizedTest
    @CsvSource({"0, 0 B", "1023, 1023 B", "1024, 1.00 KiB", "3250586, 3.10 MiB", "25165824000, 23.4 GiB"})
    void bytes(double bytes, String text) {
        assertThat(Quantity.bytes(bytes)).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0.0 s",
        "9.94, 9.9 s",
        "9.96, 10 s",
        "59.6, 1 min 0 s",
        "200.4, 3 min 20 s",
        "3600, 1 h 0 min",
        "200000, 2 d 7 h",
        "NaN, ?",
        "Infinity, ?"
    })
    void durations(double seconds, String text) {
        assertThat(Quantity.duration(seconds)).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({"0, 0", "0.0001, 1.00e-04", "0.0123, 0.012", "1.234, 1.23", "9.999, 10.0", "99.96, 100", "1234, 1234"})
    void threeDigits(double number, String text) {
        assertThat(Quantity.digits(number)).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({"1, 1 file", "0, 0 files", "1234567, '1,234,567 files'"})
    void counts(long number, String text) {
        assertThat(Quantity.count(number, "file")).isEqualTo(text);
    }

    @ParameterizedTest
    @CsvSource({"12, 12.0 FLOP", "1200000, 1.20 MFLOP", "9.87e14, 987 TFLOP"})
    void metricPrefixes(double number, String text) {
        assertThat(Quantity.metric(number) + "FLOP").isEqualTo(text);
    }
}
