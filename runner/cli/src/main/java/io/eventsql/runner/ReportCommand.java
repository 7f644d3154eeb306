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

/** Prints the result of a run as text. */
@Command(
        name = "report",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {"Prints the report of a run, rendered from its result.json.", ""},
        exitCodeListHeading = "%nExit codes:%n",
        exitCodeList = {"0:printed", "2:invalid input, such as a folder without a result"},
        footerHeading = "%nExample:%n",
        footer = "  runner report results/fan-out/1-consumer")
final class ReportCommand implements Callable<Integer> {
    @Spec
    private @Nullable CommandSpec spec;

    @Parameters(index = "0", paramLabel = "DIR", description = "folder of a run")
    private Path folder = Path.of("");

    @Override
    public Integer call() {
        CommandLine commandLine = Objects.requireNonNull(spec).commandLine();
        try {
            RunFolder.report(folder).forEach(commandLine.getOut()::println);
            return Runner.OK;
        } catch (IOException e) {
            throw new ParameterException(commandLine, "No result of a run in " + folder + ": " + e, e);
        }
    }
}
