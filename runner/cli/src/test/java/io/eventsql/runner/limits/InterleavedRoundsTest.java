package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsSpec;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class InterleavedRoundsTest {
    private final StopSignal stop = new StopSignal();
    private final List<String> shown = new ArrayList<>();
    private final List<String> ran = new ArrayList<>();

    @Test
    void measure_contendersTakeTurns_warmUpDoesNotCount() throws SQLException {
        List<MeasuredRate> rates = rounds(2).measure("Race", List.of(variant("a", 100), variant("b", 1_000)));

        assertThat(ran).containsExactly("a", "b", "a", "b", "a", "b");
        // Each round is faster by one. The first round is the warm-up.
        assertThat(rates)
                .containsExactly(
                        new MeasuredRate("a", Figure.ofRounds(List.of(101.0, 102.0), "events/s"), 1),
                        new MeasuredRate("b", Figure.ofRounds(List.of(1_001.0, 1_002.0), "events/s"), 1));
        assertThat(shown).startsWith("Race, warm-up: a 100 events/s").endsWith("Race, round 2 of 2: b 1,002 events/s");
    }

    @Test
    void measure_stopped_endsWithoutRates() {
        Variant stopping = new Variant("stopping", time -> {
            stop.raise(StopSignal.Reason.INTERRUPTED);
            return new MeasuredInterval(1, 1, 1);
        });

        assertThatExceptionOfType(RunStoppedException.class)
                .isThrownBy(() -> rounds(2).measure("Race", List.of(stopping, variant("b", 1))));
        assertThat(ran).isEmpty();
    }

    /** Rounds need no database. */
    @SuppressWarnings("NullAway")
    private InterleavedRounds rounds(int count) {
        LimitsSpec spec = new LimitsSpec(
                List.of("append"),
                "rows",
                Map.of(LimitsNumber.ROUNDS.field(), (double) count, LimitsNumber.ROUND_SECONDS.field(), 1.0));
        return new InterleavedRounds(
                new LimitsContext(null, null, spec, Map.of(), "ab12cd34", LoadClock.SYSTEM, stop, shown::add));
    }

    private Variant variant(String name, long firstEventsPerSecond) {
        AtomicLong events = new AtomicLong(firstEventsPerSecond);
        return new Variant(name, time -> {
            ran.add(name);
            long now = events.getAndIncrement();
            return new MeasuredInterval(now, now, time.toNanos());
        });
    }
}
