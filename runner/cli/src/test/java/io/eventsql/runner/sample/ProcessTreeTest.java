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
    private static final long SECOND = 1_000_000_000;

    @TempDir
    private Path proc;

    @Test
    void cpuSeconds_areOfTheProcessAndItsDescendants() throws IOException {
        process(10, "postgres", 1, 200, 100);
        process(11, "postgres: a (b) c", 10, 50, 50);
        process(12, "grandchild", 11, 0, 0);
        process(20, "other", 1, 9_999, 9_999);

        assertThat(new ProcessTree(proc).cpuSeconds(10, 0)).isEqualTo(Map.of(10L, 3.0, 11L, 1.0, 12L, 0.0));
    }

    @Test
    void residentMb_ofATree_countsSharedMemoryOnce() throws IOException {
        process(10, "postgres", 1, 0, 0);
        process(11, "postgres: a (b) c", 10, 0, 0);
        memory(10, 100, 20, 5_000);
        memory(11, 300, 10, 7_000);

        assertThat(new ProcessTree(proc).residentMb(List.of(10L, 11L, 12L))).isEqualTo(7_420 * 1_024 / 1e6);
    }

    @Test
    void totalCpuSeconds_includeEndedChildren() throws IOException {
        process(10, "postgres", 1, 200, 100);
        process(11, "postgres: a (b) c", 10, 50, 50);
        process(20, "other", 1, 9_999, 9_999);
        Files.writeString(proc.resolve("10/stat"), "10 (postgres) S 1 1 1 0 -1 4194560 1 2 3 4 200 100 30 20 20 0\n");
        ProcessTree tree = new ProcessTree(proc);

        assertThat(tree.totalCpuSeconds(10, 0)).isEqualTo(4.5);
        assertThat(tree.totalCpuSeconds(11, 0)).isEqualTo(1.0);
        assertThat(tree.parent(11)).isEqualTo(10);
    }

    @Test
    void cpuSeconds_noSuchProcess_throws() {
        assertThatThrownBy(() -> new ProcessTree(proc).cpuSeconds(99, 0)).hasMessage("no such process: 99");
    }

    @Test
    void cpuSeconds_ofSeveralProcessesInOneSecond_listProcessesOnce() throws IOException {
        process(10, "postgres", 1, 100, 0);
        process(20, "app", 1, 100, 0);
        ProcessTree tree = new ProcessTree(proc);
        tree.cpuSeconds(10, 5 * SECOND);
        process(21, "child", 20, 300, 0);

        assertThat(tree.cpuSeconds(20, 5 * SECOND + SECOND / 10))
                .as("same second")
                .isEqualTo(Map.of(20L, 1.0));
        assertThat(tree.cpuSeconds(20, 6 * SECOND)).as("next second").isEqualTo(Map.of(20L, 1.0, 21L, 3.0));
    }

    @Test
    void cpuSeconds_listing_readsOnlyNewProcessesAndDropsEndedOnes() throws IOException {
        process(10, "postgres", 1, 100, 0);
        process(11, "backend", 10, 100, 0);
        process(20, "other", 1, 100, 0);
        ProcessTree tree = new ProcessTree(proc);
        tree.cpuSeconds(10, 0);
        Files.writeString(proc.resolve("20/stat"), "a listing that reads it fails");
        for (String file : List.of("stat", "")) {
            Files.delete(proc.resolve("11").resolve(file));
        }
        process(12, "backend", 10, 200, 0);

        assertThat(tree.cpuSeconds(10, 0)).as("same second").isEqualTo(Map.of(10L, 1.0));
        assertThat(tree.cpuSeconds(10, SECOND)).as("next second").isEqualTo(Map.of(10L, 1.0, 12L, 2.0));
    }

    @Test
    void cpuNanos_areOfTheProcessWithTheName() throws IOException {
        process(10, "postgres", 1, 200, 100);
        ProcessTree tree = new ProcessTree(proc);

        assertThat(tree.cpuNanos(10, "postgres")).isEqualTo(3 * SECOND);
        assertThat(tree.cpuNanos(10, "java")).isZero();
        assertThat(tree.cpuNanos(11, "postgres")).isZero();
    }

    @Test
    void processProbe_readsMemoryRarelyAndRepeatsIt() throws IOException {
        process(10, "postgres", 1, 100, 0);
        ProcessProbe probe = new ProcessProbe("database-0", 10, new ProcessTree(proc));
        memory(10, 1_000, 0, 0);
        double first = 1_000 * 1_024 / 1e6;

        assertThat(probe.sample(0)).containsExactly(null, first);
        memory(10, 2_000, 0, 0);
        ticks(10, "postgres", 1, 150, 0);
        assertThat(probe.sample(SECOND)).as("a second later").containsExactly(0.5, first);
        assertThat(probe.sample(ProcessProbe.MEMORY_SECONDS * SECOND))
                .as("when it is due")
                .element(1)
                .isEqualTo(2 * first);
    }

    @Test
    void sampledProcess_isAnIdOrAContainer() {
        assertThat(SampledProcess.of("database-0=12")).isEqualTo(new SampledProcess("database-0", 12L, null));
        assertThat(SampledProcess.of("app=docker:app_1")).isEqualTo(new SampledProcess("app", null, "app_1"));
        for (String wrong : List.of("app", "=1", "app=", "app=docker:", "a b=1")) {
            assertThatThrownBy(() -> SampledProcess.of(wrong)).hasMessageContaining("must be NAME=PID");
        }
    }

    private void process(int id, String name, int parent, int user, int system) throws IOException {
        Files.createDirectory(proc.resolve(String.valueOf(id)));
        ticks(id, name, parent, user, system);
    }

    private void memory(int id, int anonKib, int fileKib, int sharedKib) throws IOException {
        Files.writeString(
                proc.resolve(id + "/status"),
                "Name: x\nVmRSS:\t 9 kB\nRssAnon:\t    " + anonKib + " kB\nRssFile:\t " + fileKib + " kB\nRssShmem:\t "
                        + sharedKib + " kB\n");
    }

    private void ticks(int id, String name, int parent, int user, int system) throws IOException {
        Files.writeString(
                proc.resolve(id + "/stat"),
                id + " (" + name + ") S " + parent + " 1 1 0 -1 4194560 1 2 3 4 " + user + " " + system
                        + " 0 0 20 0\n");
    }
}
