package io.eventsql.runner.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MachineProbeTest {
    @TempDir
    private Path root;

    @Test
    void sample_isTheShareOfBusyTimeSinceTheLastSample() throws IOException {
        MachineProbe probe = new MachineProbe(root);

        stat("cpu  100 10 50 1000 20 5 5 10 77 88");
        assertThat(probe.sample(0)).as("first").containsExactly((Double) null);
        // 40 + 5 + 20 + 5 + 5 + 5 ticks busy of 100; the last two counters are part of the first two.
        stat("cpu  140 15 70 1010 30 10 10 15 99 99");

        assertThat(probe.sample(1)).containsExactly(0.8);
        assertThat(probe.sample(2)).as("no time has passed").containsExactly((Double) null);
    }

    @Test
    void sample_anotherSystem_throws() throws IOException {
        stat("something else");

        assertThatThrownBy(() -> new MachineProbe(root).sample(0))
                .isInstanceOf(IOException.class)
                .hasMessageEndingWith("does not begin with the counters of all processors");
    }

    @Test
    void processors_areThoseOfTheMachine() throws IOException {
        stat("cpu  1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\ncpu10 1 2 3 4 5 6 7 8 9 10");

        assertThat(MachineProbe.processors(root)).isEqualTo(3);
    }

    @Test
    void processors_anotherSystem_areThoseOfTheProcess() {
        int available = Runtime.getRuntime().availableProcessors();

        assertThat(MachineProbe.processors(root)).isEqualTo(available);
    }

    private void stat(String first) throws IOException {
        Files.createDirectories(root.resolve("proc"));
        Files.writeString(root.resolve("proc/stat"), first + "\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1\n");
    }
}
