package io.eventsql.runner;

import java.nio.file.Path;
import picocli.CommandLine.Option;

/** Where the workload files are. */
final class WorkloadsOption {
    @Option(
            names = {"--workloads", "--workloads-dir"},
            paramLabel = "DIR",
            defaultValue = "runner/workloads",
            description = "folder of the workload files (in the environment WORKLOADS_DIR; default: ${DEFAULT-VALUE})")
    private Path folder = Path.of("");

    Path folder() {
        return folder;
    }
}
