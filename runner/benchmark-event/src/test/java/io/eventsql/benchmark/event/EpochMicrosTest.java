package io.eventsql.benchmark.event;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Instant;
import org.junit.jupiter.api.Test;

class EpochMicrosTest {

    @Test
    void of_instant_countsMicrosecondsAndDropsParts() {
        assertThat(EpochMicros.of(Instant.parse("1970-01-01T00:00:01.000002999Z")))
                .isEqualTo(1_000_002);
        assertThat(EpochMicros.of(Instant.parse("2026-02-28T23:59:58.000070Z"))).isEqualTo(1_772_323_198_000_070L);
    }

    @Test
    void toInstant_isTheInverse() {
        for (long micros : new long[] {-1_000_001, -1, 0, 1, 999_999, 1_000_000, 1_772_323_198_000_070L}) {
            assertThat(EpochMicros.of(EpochMicros.toInstant(micros))).isEqualTo(micros);
        }
    }

    @Test
    void now_liesBetweenReadingsOfTheSystemClock() {
        long before = System.currentTimeMillis() * 1_000;
        long now = EpochMicros.now();
        long after = (System.currentTimeMillis() + 1) * 1_000;

        assertThat(now).isBetween(before, after);
    }
}
