package ingot.cli;

import java.util.Locale;

/// Numbers as people read them.
final class Quantity {
    private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};

    private Quantity() {}

    /// 1234567 → `1,234,567`.
    static String count(long number) {
        return String.format(Locale.ROOT, "%,d", number);
    }

    /// 1 file, 2 files.
    static String count(long number, String noun) {
        return count(number) + " " + noun + (number == 1 ? "" : "s");
    }

    /// 3200000 → `3.1 MiB`.
    static String bytes(double bytes) {
        int unit = 0;
        while (bytes >= 1024 && unit < UNITS.length - 1) {
            bytes /= 1024;
            unit++;
        }
        return (unit == 0 ? String.format(Locale.ROOT, "%.0f", bytes) : digits(bytes)) + " " + UNITS[unit];
    }

    /// Three significant digits: 0.0123, 1.23, 12.3, 123.
    static String digits(double number) {
        double size = Math.abs(number);
        if (!Double.isFinite(number)) {
            return Double.toString(number);
        }
        if (size != 0 && size < 0.001) {
            return String.format(Locale.ROOT, "%.2e", number);
        }
        int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.01 ? 3 : 4;
        return String.format(Locale.ROOT, "%." + decimals + "f", number);
    }

    /// 1.2e9 → `1.20 G`, to be followed by a unit such as FLOP.
    static String metric(double number) {
        String[] prefixes = {"", "k", "M", "G", "T", "P", "E"};
        int prefix = 0;
        while (Math.abs(number) >= 1000 && prefix < prefixes.length - 1) {
            number /= 1000;
            prefix++;
        }
        return digits(number) + " " + prefixes[prefix];
    }

    /// 200.4 → `3 min 20 s`.
    static String duration(double seconds) {
        if (!Double.isFinite(seconds) || seconds < 0) {
            return "?";
        }
        if (seconds < 9.95) {
            return String.format(Locale.ROOT, "%.1f s", seconds);
        }
        long whole = Math.round(seconds);
        if (whole < 60) {
            return whole + " s";
        }
        if (whole < 3600) {
            return whole / 60 + " min " + whole % 60 + " s";
        }
        if (whole < 48 * 3600) {
            return whole / 3600 + " h " + whole % 3600 / 60 + " min";
        }
        return whole / 86400 + " d " + whole % 86400 / 3600 + " h";
    }
}
