package io.eventsql.runner;

import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The folder of the workload files. */
final class WorkloadsOption {
    @Option(
            names = {"--workloads", "--workloads-dir"},
            paramLabel = "DIR",
            defaultValue = "runner/workloads",
            description = "folder of the workload files (environment: WORKLOADS_DIR; default: ${DEFAULT-VALUE})")
    private Path folder = Path.of("");

    Path folder() {
        return folder;
    }
}
