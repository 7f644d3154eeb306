package io.eventsql.runner.spec;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The workload files of the repository. */
class WorkloadsTest {
    private static final Path FOLDER = Path.of("..", "workloads");

    @Test
    void read_everyFile_canBeRun() throws IOException {
        List<Path> files = WorkloadFile.list(FOLDER);

        assertThat(files).extracting(file -> file.getFileName().toString()).contains("main.yaml", "stress.yaml");
        for (Path file : files) {
            Workload workload = WorkloadFile.read(file, List.of());
            assertThat(workload.runs()).as(file.toString()).isNotEmpty();
        }
    }

    @Test
    void read_publish_asksForAsManyDatabasesAsItsVariables() throws IOException {
        for (Path file : WorkloadFile.list(FOLDER)) {
            Workload workload = WorkloadFile.read(file, List.of());
            if (workload.kind() == WorkloadKind.PUBLISH) {
                assertThat(workload.runs())
                        .allMatch(run -> run.variables()
                                .getOrDefault("SHARDS", "3")
                                .equals(String.valueOf(run.environment().databases())));
            }
        }
    }
}
