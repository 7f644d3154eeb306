package io.eventsql.runner.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcessTreeTest {
    @TempDir
    private Path proc;

    @Test
    void usage_isOfTheProcessAndItsDescendants() throws IOException {
        process(10, "postgres", 1, 200, 100, "Pss: 1000 kB");
        process(11, "postgres: a (b) c", 10, 50, 50, "Pss: 500 kB");
        process(12, "grandchild", 11, 0, 0, "Pss: 0 kB");
        process(20, "other", 1, 9_999, 9_999, "Pss: 9 kB");

        ProcessTree.Usage usage = new ProcessTree(proc).usage(10);

        assertThat(usage.cpuSeconds()).isEqualTo(Map.of(10L, 3.0, 11L, 1.0, 12L, 0.0));
        assertThat(usage.residentMb()).isEqualTo(1_500 * 1_024 / 1e6);
    }

    @Test
    void usage_unreadableFile_isSkipped() throws IOException {
        process(10, "postgres", 1, 0, 0, "Pss: 7 kB");
        Files.delete(proc.resolve("10/smaps_rollup"));

        ProcessTree.Usage usage = new ProcessTree(proc).usage(10);

        assertThat(usage.residentMb()).as("resident instead of proportional").isEqualTo(3_000 * 1_024 / 1e6);
    }

    @Test
    void usage_noSuchProcess_throws() {
        assertThatThrownBy(() -> new ProcessTree(proc).usage(99)).hasMessage("no such process: 99");
    }

    @Test
    void sampledProcess_isAnIdOrAContainer() {
        assertThat(SampledProcess.of("database-0=12")).isEqualTo(new SampledProcess("database-0", 12L, null));
        assertThat(SampledProcess.of("app=docker:app_1")).isEqualTo(new SampledProcess("app", null, "app_1"));
        for (String wrong : List.of("app", "=1", "app=", "app=docker:", "a b=1")) {
            assertThatThrownBy(() -> SampledProcess.of(wrong)).hasMessageContaining("must be NAME=PID");
        }
    }

    private void process(int id, String name, int parent, int user, int system, String pss) throws IOException {
        Path folder = Files.createDirectory(proc.resolve(String.valueOf(id)));
        Files.writeString(
                folder.resolve("stat"),
                id + " (" + name + ") S " + parent + " 1 1 0 -1 4194560 1 2 3 4 " + user + " " + system
                        + " 0 0 20 0\n");
        Files.writeString(folder.resolve("smaps_rollup"), "00400000-7ff [rollup]\nRss: 1 kB\n" + pss + "\n");
        Files.writeString(folder.resolve("status"), "Name: x\nVmRSS:\t    3000 kB\n");
    }
}
