package io.eventsql.runner.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class DockerStatsTest {

    @Test
    void of_aRecordedLine_readsItsUnits() {
        DockerStats stats =
                DockerStats.of("{\"BlockIO\":\"12.3MB / 1.5GB\",\"CPUPerc\":\"153.25%\",\"Container\":\"db\","
                        + "\"ID\":\"0f9\",\"MemPerc\":\"1.40%\",\"MemUsage\":\"330.5MiB / 23.54GiB\",\"Name\":\"db\","
                        + "\"NetIO\":\"1.2kB / 0B\",\"PIDs\":\"12\"}");

        assertThat(stats).isEqualTo(new DockerStats(1.5325, 330.5 * 1.048576, 12.3, 1_500));
    }

    @Test
    void of_otherOutput_isRejected() {
        assertThatThrownBy(() -> DockerStats.of("Cannot connect to the Docker daemon"))
                .hasMessageContaining("Unexpected output of docker stats: Cannot connect");
        assertThatThrownBy(() -> DockerStats.of("{\"CPUPerc\":\"1%\"}")).hasMessageContaining("Unexpected output");
    }
}
