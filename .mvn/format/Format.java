import static java.lang.constant.ConstantDescs.*;

import com.palantir.javaformat.java.Formatter;
import com.palantir.javaformat.java.FormatterException;
import com.palantir.javaformat.java.JavaFormatterOptions;
import com.palantir.javaformat.java.JavaFormatterOptions.Style;
import com.sun.source.tree.AnyPatternTree;
import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassTransform;
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
    public static void main(String[] arguments) throws IOException, IllegalAccessException {
        teachUnnamedPattern();
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

    /// The formatter stops at the pattern `_` of `case Point(var x, _)`: its visitor has no such method yet. This adds
    /// `visitAnyPattern(node, p) { token("_"); return null; }` to the visitor before anyone loads it.
    private static void teachUnnamedPattern() throws IOException, IllegalAccessException {
        var lookup = MethodHandles.privateLookupIn(JavaFormatterOptions.class, MethodHandles.lookup());
        var visitor = ClassDesc.of(JavaFormatterOptions.class.getPackageName(), "JavaInputAstVisitor");
        var anyPattern = MethodTypeDesc.of(
                CD_Object, AnyPatternTree.class.describeConstable().orElseThrow(), CD_Object);
        var token = MethodTypeDesc.of(CD_void, CD_String);
        try (var bytes = JavaFormatterOptions.class.getResourceAsStream(visitor.displayName() + ".class")) {
            var original = ClassFile.of().parse(bytes.readAllBytes());
            if (original.methods().stream()
                    .anyMatch(method -> method.methodName().equalsString("visitAnyPattern"))) return;
            lookup.defineClass(ClassFile.of()
                    .transformClass(
                            original,
                            ClassTransform.endHandler(type -> type.withMethodBody(
                                    "visitAnyPattern",
                                    anyPattern,
                                    ClassFile.ACC_PUBLIC,
                                    code -> code.aload(0)
                                            .ldc("_")
                                            .invokevirtual(visitor, "token", token)
                                            .aconst_null()
                                            .areturn()))));
        }
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
            var after = formatter.formatSourceAndFixImports(before);
            if (after.equals(before)) return Optional.empty();
            if (!write) return Optional.of("not formatted: " + root.relativize(file));
            Files.writeString(file, after);
            return Optional.empty();
        } catch (FormatterException | IOException e) {
            return Optional.of(root.relativize(file) + ": " + e.getMessage());
        }
    }
}
