package io.eventsql.runner;

import io.eventsql.runner.result.RunFolder;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Shows the result of a run for people. */
@Command(
        name = "report",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {"Shows the result of a run of `runner run` as text, made anew from its result.json.", ""},
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {"0:shown", "2:wrong input, such as a folder without a result"},
        footerHeading = "%nExample:%n",
        footer = "  runner report results/fan-out/1-consumer")
final class ReportCommand implements Callable<Integer> {
    @Spec
    private @Nullable CommandSpec spec;

    @Parameters(index = "0", paramLabel = "DIR", description = "a run's folder")
    private Path folder = Path.of("");

    @Override
    public Integer call() {
        CommandLine commandLine = Objects.requireNonNull(spec).commandLine();
        try {
            RunFolder.report(folder).forEach(commandLine.getOut()::println);
            return Runner.OK;
        } catch (IOException e) {
            throw new ParameterException(commandLine, "There is no result of a run in " + folder + ": " + e, e);
        }
    }
}
