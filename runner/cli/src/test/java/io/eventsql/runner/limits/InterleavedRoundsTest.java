package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.runner.load.StopSignal;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class InterleavedRoundsTest {
    private final StopSignal stop = new StopSignal();
    private final ByteArrayOutputStream shown = new ByteArrayOutputStream();
    private final List<String> ran = new ArrayList<>();

    @Test
    void measure_contendersTakeTurns_warmUpDoesNotCount() throws SQLException {
        List<MeasuredRate> rates = rounds(2).measure("Race", List.of(variant("a", 100), variant("b", 1_000)));

        assertThat(ran).containsExactly("a", "b", "a", "b", "a", "b");
        // Each round is faster by one. The first round is the warm-up.
        assertThat(rates)
                .containsExactly(
                        new MeasuredRate("a", 101.5, List.of(101.0, 102.0), 1),
                        new MeasuredRate("b", 1_001.5, List.of(1_001.0, 1_002.0), 1));
        assertThat(shown.toString(StandardCharsets.UTF_8).lines())
                .startsWith("Race, warm-up: a 100 events/s")
                .endsWith("Race, round 2 of 2: b 1,002 events/s");
    }

    @Test
    void measure_stopped_endsWithoutRates() {
        Variant stopping = new Variant() {
            @Override
            public String name() {
                return "stopping";
            }

            @Override
            public MeasuredInterval run(Duration time) {
                stop.raise(StopSignal.Reason.INTERRUPTED);
                return new MeasuredInterval(1, 1, 1);
            }
        };

        assertThatExceptionOfType(RunStoppedException.class)
                .isThrownBy(() -> rounds(2).measure("Race", List.of(stopping, variant("b", 1))));
        assertThat(ran).isEmpty();
    }

    private InterleavedRounds rounds(int count) {
        return new InterleavedRounds(
                new LimitsSettings.Rounds(count, 1), stop, new PrintStream(shown, true, StandardCharsets.UTF_8));
    }

    private Variant variant(String name, long firstEventsPerSecond) {
        return new Variant() {
            private long events = firstEventsPerSecond;

            @Override
            public String name() {
                return name;
            }

            @Override
            public MeasuredInterval run(Duration time) {
                ran.add(name);
                long now = events++;
                return new MeasuredInterval(now, now, time.toNanos());
            }
        };
    }
}
