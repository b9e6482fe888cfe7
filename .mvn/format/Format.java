import static java.lang.constant.ConstantDescs.*;

import com.palantir.javaformat.java.Formatter;
import com.palantir.javaformat.java.FormatterException;
import com.palantir.javaformat.java.JavaFormatterOptions;
import com.palantir.javaformat.java.JavaFormatterOptions.Style;
import com.sun.source.tree.AnyPatternTree;
import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.MethodModel;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.lang.invoke.MethodHandles;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Checks (`check`) or rewrites (`write`) the layout of every Java source file below a folder.
public final class Format {
    private static final String FORMATTER = JavaFormatterOptions.class.getPackageName();
    private static final int COLUMNS = 120;

    public static void main(String[] arguments) throws IOException, IllegalAccessException {
        teachUnnamedPattern();
        keepCommentLines();
        var formatter = Formatter.createFormatter(
                JavaFormatterOptions.builder().style(Style.PALANTIR).build());
        var write = arguments[0].equals("write");
        var root = Path.of(arguments[1]).toRealPath();
        var complaints = sources(root).parallelStream()
                .map(file -> complaint(formatter, root, file, write))
                .flatMap(Optional::stream)
                .toList();
        if (complaints.isEmpty()) return;
        complaints.forEach(System.err::println);
        if (write) System.exit(1);
        System.err.println("Some sources are not laid out as the formatter does. Run ./format to rewrite them.");
        System.exit(1);
    }

    /// The formatter stops at the pattern `_` of `case Point(var x, _)`, for which its visitor has no method yet. This
    /// adds
    /// `visitAnyPattern(node, p) { token("_"); return null; }`.
    private static void teachUnnamedPattern() throws IOException, IllegalAccessException {
        var visitor = ClassDesc.of(FORMATTER, "JavaInputAstVisitor");
        var anyPattern = MethodTypeDesc.of(
                CD_Object, AnyPatternTree.class.describeConstable().orElseThrow(), CD_Object);
        var token = MethodTypeDesc.of(CD_void, CD_String);
        patch(
                visitor,
                ClassTransform.endHandler(type -> type.withMethodBody(
                        "visitAnyPattern",
                        anyPattern,
                        ClassFile.ACC_PUBLIC,
                        code -> code.aload(0)
                                .ldc("_")
                                .invokevirtual(visitor, "token", token)
                                .aconst_null()
                                .areturn())));
    }

    /// The formatter breaks long `///` lines without repeating the slashes. This makes `wrapLineComments(lines,
    /// column)`
    /// return its lines as they are; `wrapDocumentation` does the work.
    private static void keepCommentLines() throws IOException, IllegalAccessException {
        patch(ClassDesc.of(FORMATTER, "JavaCommentsHelper"), (type, element) -> {
            if (element instanceof MethodModel method && method.methodName().equalsString("wrapLineComments")) {
                type.withMethodBody(
                        method.methodName().stringValue(),
                        method.methodTypeSymbol(),
                        method.flags().flagsMask(),
                        code -> code.aload(1).areturn());
            } else {
                type.with(element);
            }
        });
    }

    /// Changes a class of the formatter before anything loads it.
    private static void patch(ClassDesc type, ClassTransform change) throws IOException, IllegalAccessException {
        var neighbour = JavaFormatterOptions.class;
        try (var bytes = neighbour.getResourceAsStream(type.displayName() + ".class")) {
            var original = ClassFile.of().parse(bytes.readAllBytes());
            MethodHandles.privateLookupIn(neighbour, MethodHandles.lookup())
                    .defineClass(ClassFile.of().transformClass(original, change));
        }
    }

    /// Breaks `///` lines that are too long at the last space that fits; what is left over opens the next line of the
    /// paragraph. Tables and code stay as they are.
    private static String wrapDocumentation(String source) {
        var wrapped = new StringBuilder();
        var rest = ""; // left over from the line before, with its prefix
        var code = false;
        for (var line : source.lines().toList()) {
            var prefix = line.indexOf("///") + 4;
            var text = line.strip().startsWith("/// ");
            if (text && line.startsWith("```", prefix)) code = !code;
            if (!text) code = false;
            text &= !code && prefix < line.length() && "|` ".indexOf(line.charAt(prefix)) < 0;
            if (!rest.isEmpty()) {
                var continues = text && rest.startsWith(line.substring(0, prefix)) && isProse(line.charAt(prefix));
                if (continues) line = rest + " " + line.substring(prefix);
                else wrapped.append(rest).append('\n');
                rest = "";
            }
            while (text && line.length() > COLUMNS) {
                var space = line.lastIndexOf(' ', COLUMNS);
                if (space <= prefix) break;
                wrapped.append(line, 0, space).append('\n');
                line = rest = line.substring(0, prefix) + line.substring(space + 1);
            }
            if (rest.isEmpty()) wrapped.append(line).append('\n');
        }
        return wrapped.toString();
    }

    private static boolean isProse(char first) {
        return "-*#>+".indexOf(first) < 0 && !Character.isDigit(first);
    }

    /// Sources lie in `MODULE/src` and in this folder; build outputs, run folders and caches are never entered.
    private static List<Path> sources(Path root) throws IOException {
        var sources = new ArrayList<Path>();
        Files.walkFileTree(root, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
                var name = folder.getFileName().toString();
                var entered =
                        name.equals(".mvn") || !(name.startsWith(".") || name.equals("target") || name.equals("runs"));
                return entered || folder.equals(root) ? FileVisitResult.CONTINUE : FileVisitResult.SKIP_SUBTREE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                if (file.toString().endsWith(".java")) sources.add(file);
                return FileVisitResult.CONTINUE;
            }
        });
        return sources;
    }

    private static Optional<String> complaint(Formatter formatter, Path root, Path file, boolean write) {
        try {
            var before = Files.readString(file);
            var after = wrapDocumentation(formatter.formatSourceAndFixImports(before));
            if (after.equals(before)) return Optional.empty();
            if (!write) return Optional.of("not formatted: " + root.relativize(file));
            Files.writeString(file, after);
            return Optional.empty();
        } catch (FormatterException | IOException e) {
            return Optional.of(root.relativize(file) + ": " + e.getMessage());
        }
    }
}
