package io.eventsql.runner.phases;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.testing.ManualClock;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class ProgressDisplayTest {

    @Test
    void show_eachSecond_printsALineEveryFiveSeconds() {
        ManualClock clock = new ManualClock();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Progress lines = ProgressDisplay.lines(new PrintStream(out, true, StandardCharsets.UTF_8), clock)
                .start("Publishing", 100_000);

        for (int second = 1; second <= 10; second++) {
            clock.advance(1_000_000_000);
            lines.show(second * 1_000, second == 10 ? 3 : 0);
        }

        assertThat(out.toString(StandardCharsets.UTF_8).lines())
                .containsExactly(
                        "Publishing: 5000 of 100000 events published, 1000 per second",
                        "Publishing: 10000 of 100000 events published, 1000 per second, 3 failed");
    }
}
