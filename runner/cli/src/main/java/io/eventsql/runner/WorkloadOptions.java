package io.eventsql.runner;

import io.eventsql.runner.spec.FieldOverride;
import io.eventsql.runner.spec.InvalidWorkloadException;
import io.eventsql.runner.spec.RunSpec;
import io.eventsql.runner.spec.Workload;
import io.eventsql.runner.spec.WorkloadFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** Selects a workload and its runs, and overrides fields. */
final class WorkloadOptions {
    @Parameters(index = "0", paramLabel = "WORKLOAD", description = "name of a workload, or path of a YAML file")
    private String workload = "";

    @Mixin
    private final WorkloadsOption workloads = new WorkloadsOption();

    @Option(
            names = "--set",
            paramLabel = "FIELD=VALUE",
            description = "override a field in every run, such as consumers=5 or phases.1.rate=2000; repeatable")
    private List<String> overrides = new ArrayList<>();

    @Option(
            names = "--only",
            paramLabel = "RUN",
            split = ",",
            description = "run only this run; repeatable (default: all)")
    private List<String> only = new ArrayList<>();

    /**
     * Reads the workload with the selected runs.
     *
     * @throws ParameterException if the workload or an option is invalid
     */
    Workload read(CommandLine commandLine) throws IOException {
        Path file = file();
        if (!Files.isRegularFile(file)) {
            throw new ParameterException(commandLine, "Unknown workload " + workload + ": no file " + file);
        }
        try {
            Workload all = WorkloadFile.read(
                    file, overrides.stream().map(FieldOverride::of).toList());
            return new Workload(all.name(), all.kind(), all.description(), selectRuns(all, commandLine));
        } catch (InvalidWorkloadException e) {
            throw new ParameterException(commandLine, e.getMessage(), e);
        }
    }

    private Path file() {
        boolean isFile = workload.endsWith(".yaml") || workload.contains("/");
        return isFile ? Path.of(workload) : workloads.folder().resolve(workload + ".yaml");
    }

    private List<RunSpec> selectRuns(Workload all, CommandLine commandLine) {
        List<String> names = all.runs().stream().map(RunSpec::name).toList();
        for (String name : only) {
            if (!names.contains(name)) {
                throw new ParameterException(
                        commandLine,
                        "--only (ONLY) must be one of " + String.join(", ", names) + ", but is '" + name + "'");
            }
        }
        return all.runs().stream()
                .filter(run -> only.isEmpty() || only.contains(run.name()))
                .toList();
    }
}
