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

/** Which runs of which workload, and what is changed in them. */
final class WorkloadOptions {
    @Parameters(index = "0", paramLabel = "WORKLOAD", description = "name of a workload, or a YAML file")
    private String workload = "";

    @Mixin
    private final WorkloadsOption workloads = new WorkloadsOption();

    @Option(
            names = "--set",
            paramLabel = "FIELD=VALUE",
            description = "changes a field in every run, such as consumers=5 or phases.1.rate=2000; may be repeated")
    private List<String> overrides = new ArrayList<>();

    @Option(
            names = "--only",
            paramLabel = "RUN",
            split = ",",
            description = "only this run; may be repeated (default: all)")
    private List<String> only = new ArrayList<>();

    /** The workload with the runs that are asked for; what is wrong is a {@link ParameterException}. */
    Workload read(CommandLine commandLine) throws IOException {
        Path file = file();
        if (!Files.isRegularFile(file)) {
            throw new ParameterException(
                    commandLine, "There is no workload " + workload + ": looked for the file " + file);
        }
        try {
            Workload all = WorkloadFile.read(
                    file, overrides.stream().map(FieldOverride::of).toList());
            return new Workload(all.name(), all.kind(), all.description(), selected(all, commandLine));
        } catch (InvalidWorkloadException e) {
            throw new ParameterException(commandLine, e.getMessage(), e);
        }
    }

    private Path file() {
        boolean isFile = workload.endsWith(".yaml") || workload.contains("/");
        return isFile ? Path.of(workload) : workloads.folder().resolve(workload + ".yaml");
    }

    private List<RunSpec> selected(Workload all, CommandLine commandLine) {
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
