package io.eventsql.runner.limits;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.load.ClockAnchor;
import io.eventsql.runner.measure.PhaseMeasurement;
import java.util.List;
import org.junit.jupiter.api.Test;

class TenthsMeterTest {
    private static final long START = 7_000_000_000L;
    private static final long SECOND = 1_000_000_000L;

    private final TenthsMeter meter = new TenthsMeter(START, 10 * SECOND);

    @Test
    void acknowledged_countsForTheTenthOfTheIntendedTime() {
        // Late answers count for the tenth of their call.
        acknowledge(0, 5 * SECOND);
        acknowledge(SECOND - 1, SECOND);
        acknowledge(SECOND, 2 * SECOND);
        acknowledge(10 * SECOND - 1, 20 * SECOND);

        assertThat(published()).containsExactly(2L, 1L, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 1L);
        assertThat(meter.answeredEvents()).isEqualTo(4);
    }

    @Test
    void failed_withoutAnAnswerAtTheEnd_countsForTheLastTenth() {
        meter.failed(START + 11 * SECOND, START + 60 * SECOND, 3, new IllegalStateException("no answer"));

        assertThat(measurements().getLast().failedEvents()).isEqualTo(3);
        assertThat(meter.answeredEvents()).isEqualTo(3);
    }

    private void acknowledge(long intendedAfterStart, long acknowledgedAfterStart) {
        long intended = START + intendedAfterStart;
        meter.acknowledged(intended, intended, START + acknowledgedAfterStart, 1);
    }

    private List<PhaseMeasurement> measurements() {
        return meter.measurements(new ClockAnchor(START, 1_800_000_000_000_000L));
    }

    private List<Long> published() {
        return measurements().stream().map(PhaseMeasurement::publishedEvents).toList();
    }
}
