package io.eventsql.runner;

import io.eventsql.runner.spec.InvalidWorkloadException;
import io.eventsql.runner.spec.Workload;
import io.eventsql.runner.spec.WorkloadFile;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.ParameterException;

/** Lists the available workloads. */
@Command(
        name = "list",
        description = {"Lists the available workloads: name, kind, number of runs and description.", ""},
        exitCodeList = {"0:listed", "2:invalid input, such as an invalid workload file"},
        footerHeading = "%nExample:%n",
        footer = "  runner list --workloads runner/workloads")
final class ListCommand extends RunnerCommand {
    @Mixin
    private final WorkloadsOption workloads = new WorkloadsOption();

    @Override
    public Integer call() throws IOException {
        CommandLine commandLine = commandLine();
        if (!Files.isDirectory(workloads.folder())) {
            throw new ParameterException(
                    commandLine, "--workloads (WORKLOADS_DIR) must be a folder, but is " + workloads.folder());
        }
        PrintWriter out = commandLine.getOut();
        out.printf(Locale.ROOT, "%-12s %-8s %4s  %s%n", "workload", "kind", "runs", "description");
        int exitCode = Runner.OK;
        for (Path file : WorkloadFile.list(workloads.folder())) {
            try {
                Workload workload = WorkloadFile.read(file, List.of());
                String kind = workload.kind().name().toLowerCase(Locale.ROOT);
                out.printf(
                        Locale.ROOT,
                        "%-12s %-8s %4d  %s%n",
                        workload.name(),
                        kind,
                        workload.runs().size(),
                        workload.description());
            } catch (InvalidWorkloadException e) {
                commandLine.getErr().println(e.getMessage());
                exitCode = Runner.INVALID_INPUT;
            }
        }
        return exitCode;
    }
}
