package ingot.bench;

import ingot.compiler.Compiler;
import ingot.compiler.Program;
import ingot.compiler.TrainingSpec;
import ingot.train.Task;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine;

/// How long the graph compiler takes, cold: the first compilation of this process.
@CommandLine.Command(
        name = "compile",
        description = "Compile time of a training step, cold and warm.",
        mixinStandardHelpOptions = true)
final class CompileBenchmark implements Callable<Integer> {
    @CommandLine.Option(names = "--model", defaultValue = "GPT2", description = "${COMPLETION-CANDIDATES}")
    private GptSize size = GptSize.GPT2;

    @Override
    public Integer call() {
        Task task = size.task();
        TrainingSpec spec = new TrainingSpec(
                task.lossGraph(), "loss", size.batch, size.batch, 1, task.batched(), Set.of(), false, Set.of());
        for (int i = 0; i < 3; i++) {
            long start = System.nanoTime();
            Program program = Compiler.training(spec);
            Sample.print(
                    "%s: %.2f s, %d steps, %d stages (%d distinct); %s",
                    i == 0 ? "cold" : "warm",
                    (System.nanoTime() - start) / 1e9,
                    program.steps().size(),
                    program.stages().size(),
                    program.stages().stream()
                            .map(Program.Stage::signature)
                            .distinct()
                            .count(),
                    Sample.load());
        }
        return 0;
    }
}
