package ingot.data;

import ingot.ir.IngotException;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.MalformedInputException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Grey images as lines of numbers, `label,pixel1,…`: a class and the bytes of a square, row by row.
///
/// @param size height and width
/// @param labels the class of each image
/// @param pixels [images, size, size]
record PixelTable(Path file, int size, List<String> labels, byte[] pixels) {
    /// Reads a CSV file with a header, whose first column is `label`.
    static PixelTable read(Path file) {
        List<String> labels = new ArrayList<>();
        ByteArrayOutputStream pixels = new ByteArrayOutputStream();
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            String header = lines.readLine();
            if (header == null || !header.startsWith("label,")) {
                throw new IngotException("images: " + file + " expected a header label,pixel1,… in its first line, got "
                        + (header == null ? "nothing" : header.substring(0, Math.min(40, header.length()))));
            }
            int columns = header.split(",", -1).length - 1;
            int size = (int) Math.round(Math.sqrt(columns));
            if (size * size != columns) {
                throw new IngotException(
                        "images: " + file + " has " + columns + " columns of pixels, which is no square");
            }
            int number = 1;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                number++;
                if (line.isBlank()) {
                    continue;
                }
                String[] cells = line.split(",", -1);
                if (cells.length != columns + 1) {
                    throw new IngotException("images: " + file + " line " + number + " has " + cells.length
                            + " columns, the header " + (columns + 1));
                }
                labels.add(cells[0].strip());
                for (int i = 1; i < cells.length; i++) {
                    pixels.write(pixel(cells[i].strip(), file, number));
                }
            }
            if (labels.isEmpty()) {
                throw new IngotException("images: " + file + " has no images");
            }
            return new PixelTable(file, size, labels, pixels.toByteArray());
        } catch (MalformedInputException e) {
            throw new IngotException("images: " + file + " is no text", e);
        } catch (IOException e) {
            throw new IngotException("images: cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    private static int pixel(String text, Path file, int line) {
        int value = text.matches("\\d{1,3}") ? Integer.parseInt(text) : 256;
        if (value > 255) {
            throw new IngotException("images: " + file + " line " + line + ": a pixel is 0 to 255, got '" + text + "'");
        }
        return value;
    }
}
