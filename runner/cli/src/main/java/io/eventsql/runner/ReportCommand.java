package io.eventsql.runner;

import io.eventsql.runner.result.RunFolder;
import java.io.IOException;
import java.nio.file.Path;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** Prints the result of a run as text. */
@Command(
        name = "report",
        description = {"Prints the report of a run, rendered from its result.json.", ""},
        exitCodeList = {"0:printed", "2:invalid input, such as a folder without a result"},
        footerHeading = "%nExample:%n",
        footer = "  runner report results/fan-out/1-consumer")
final class ReportCommand extends RunnerCommand {
    @Parameters(index = "0", paramLabel = "DIR", description = "folder of a run")
    private Path folder = Path.of("");

    @Override
    public Integer call() {
        CommandLine commandLine = commandLine();
        try {
            RunFolder.report(folder).forEach(commandLine.getOut()::println);
            return Runner.OK;
        } catch (IOException e) {
            throw new ParameterException(commandLine, "No result of a run in " + folder + ": " + e, e);
        }
    }
}
