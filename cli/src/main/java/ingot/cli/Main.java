package ingot.cli;

import ingot.data.Nearest;
import ingot.ir.IngotException;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.HelpCommand;
import picocli.CommandLine.ParameterException;

/// The `ingot` command.
///
/// Exit status: 0 done, 1 a failure that the message explains, 2 wrong usage, 70 a bug, 130 stopped by Ctrl-C (143 by
/// `kill`).
@Command(
        name = "ingot",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        synopsisSubcommandLabel = "COMMAND",
        header = "Trains, runs and inspects language models on one machine.",
        description = {
            "",
            "Begin with   ingot train examples/quickstart.yaml",
            "",
            "`ingot help COMMAND` says more about a command.",
            ""
        },
        commandListHeading = "Commands:%n",
        optionListHeading = "Options:%n",
        footerHeading = "%nEnvironment:%n",
        footer = {
            "  INGOT_JAVA_HOME   the JDK to use, 25 or newer; else the usual folders",
            "  INGOT_JAVA_OPTS   more options for Java, such as -Xmx4g",
            "  INGOT_VECTOR=off  scalar code, not the vector module: slow, the same bits",
            "  INGOT_START=plain starts Java without its cache of loaded classes",
            "  INGOT_DEBUG       what the compiler prints, any of graph, passes, kernels,",
            "                    program, time; and stack: stack traces of errors",
            "",
            "`ingot bench` measures speed; it is a module of its own."
        },
        subcommands = {
            Train.class,
            FineTune.class,
            Predict.class,
            Generate.class,
            Eval.class,
            Explain.class,
            Plan.class,
            Store.class,
            Embed.class,
            Export.class,
            Import.class,
            Doctor.class,
            HelpCommand.class,
            Rehearse.class
        })
public final class Main implements Runnable {
    static final int FAILED = 1;
    static final int WRONG_USAGE = 2;
    static final int BUG = 70;

    private final Screen screen;

    private Main(Screen screen) {
        this.screen = screen;
    }

    @Override
    public void run() {
        new CommandLine(this, new Commands(screen)).usage(screen.out());
    }

    public static void main(String[] arguments) {
        // UTF-8 whatever the locale says: the text of a corpus is no less than that.
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        PrintStream err = new PrintStream(new FileOutputStream(FileDescriptor.err), true, StandardCharsets.UTF_8);
        if (Boolean.getBoolean("ingot.merge")) {
            err = out; // one terminal shows both; what goes through one stream stays in order
        }
        String kind = System.getenv().getOrDefault("TERM", "dumb");
        // The launcher knows whether stdout alone is a terminal; Java only whether stdin and stdout both are.
        String known = System.getProperty("ingot.terminal");
        boolean terminal = !kind.equals("dumb")
                && (known == null ? System.console() != null && System.console().isTerminal() : known.equals("true"));
        boolean styled = terminal && System.getenv("NO_COLOR") == null;
        int status = run(new Screen(out, err, terminal, styled, System::nanoTime), System.getenv(), arguments);
        out.flush();
        System.exit(status);
    }

    /// Runs one command line and returns the exit status.
    static int run(Screen screen, Map<String, String> environment, String... arguments) {
        boolean stack = Arrays.asList(
                        environment.getOrDefault("INGOT_DEBUG", "").split("[,\\s]+"))
                .contains("stack");
        CommandLine line = new CommandLine(new Main(screen), new Commands(screen))
                .setOut(new PrintWriter(screen.out(), true, screen.out().charset()))
                .setErr(new PrintWriter(screen.err(), true, screen.err().charset()))
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setParameterExceptionHandler((failure, given) -> wrongUsage(screen, failure, given))
                .setExecutionExceptionHandler((failure, command, given) -> failed(screen, failure, stack));
        try {
            return line.execute(arguments);
        } catch (OutOfMemoryError e) {
            screen.end(true);
            screen.warn("error: Java's heap of "
                    + Quantity.bytes(Runtime.getRuntime().maxMemory())
                    + " is too small for this; give it more with INGOT_JAVA_OPTS=-Xmx4g");
            return FAILED;
        } catch (Error e) {
            return failed(screen, e, stack);
        }
    }

    private static int wrongUsage(Screen screen, ParameterException failure, String[] given) {
        CommandLine command = failure.getCommandLine();
        StringBuilder message = new StringBuilder("error: ")
                .append(String.valueOf(failure.getMessage()).lines().findFirst().orElse(""));
        List<String> dashed = Stream.of(given)
                .filter(word -> word.matches("-+[a-z]+(\\.[a-z0-9-]+)+=.*"))
                .toList();
        if (!dashed.isEmpty()) {
            message.append("; settings have no dashes: ")
                    .append(dashed.getFirst().replaceFirst("^-+", ""));
        } else if (failure instanceof CommandLine.UnmatchedArgumentException unmatched) {
            suggestion(command, unmatched)
                    .ifPresent(near ->
                            message.append("; did you mean ").append(near).append('?'));
        }
        screen.warn(message.toString());
        String name = command.getCommandSpec().qualifiedName();
        boolean group = !command.getSubcommands().isEmpty();
        boolean inner = name.equals("ingot") || name.indexOf(' ') != name.lastIndexOf(' ');
        screen.warn("usage: " + name + (group ? " COMMAND …" : parameters(command)) + ", see `"
                + (inner ? name + " --help" : name.replaceFirst("ingot ", "ingot help ")) + "`");
        return WRONG_USAGE;
    }

    private static Optional<String> suggestion(CommandLine command, CommandLine.UnmatchedArgumentException unmatched) {
        return command.getSubcommands().isEmpty()
                ? unmatched.getSuggestions().stream().findFirst()
                : Nearest.close(
                        unmatched.getUnmatched().getFirst(),
                        List.copyOf(command.getSubcommands().keySet()));
    }

    private static String parameters(CommandLine command) {
        return command.getCommandSpec().positionalParameters().stream()
                .map(parameter -> parameter.index().isVariable()
                        ? " [" + parameter.paramLabel() + " …]"
                        : " " + parameter.paramLabel())
                .collect(Collectors.joining());
    }

    private static int failed(Screen screen, Throwable failure, boolean stack) {
        screen.end(true);
        if (failure instanceof IngotException) {
            screen.warn("error: " + failure.getMessage());
            if (stack) {
                failure.printStackTrace(screen.err());
            }
            return FAILED;
        }
        screen.warn("error: this is a bug in Ingot, please report it with the lines below and `ingot doctor`.");
        failure.printStackTrace(screen.err());
        return BUG;
    }
}
