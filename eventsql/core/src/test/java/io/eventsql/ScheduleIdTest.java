package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class ScheduleIdTest {
    private static final Instant DUE = Instant.now().plus(Duration.ofDays(100));

    @Test
    void next_containsTheTimeRoundedUpToMilliseconds() {
        Instant due = Instant.ofEpochMilli(DUE.toEpochMilli());
        assertThat(ScheduleId.due(ScheduleId.next(due))).isEqualTo(due);
        assertThat(ScheduleId.due(ScheduleId.next(due.plusNanos(1)))).isEqualTo(due.plusMillis(1));
        assertThat(ScheduleId.due(ScheduleId.next(due.plusNanos(999_999)))).isEqualTo(due.plusMillis(1));
    }

    @Test
    void next_sameTime_risesAsTextToo() {
        Set<UUID> ids = new HashSet<>();
        UUID before = ScheduleId.next(DUE);
        for (int i = 0; i < 10_000; i++) {
            UUID id = ScheduleId.next(DUE);
            assertThat(id.version()).isEqualTo(7);
            assertThat(id.variant()).isEqualTo(2);
            assertThat(id).isGreaterThan(before);
            assertThat(id.toString()).isGreaterThan(before.toString()); // as PostgreSQL compares them
            assertThat(ids.add(id)).isTrue();
            before = id;
        }
    }

    @Test
    void next_past_isNow() {
        Instant before = Instant.ofEpochMilli(Instant.now().toEpochMilli());
        assertThat(ScheduleId.due(ScheduleId.next(Instant.MIN))).isBetween(before, Instant.now());
    }

    @Test
    void next_tooFarAhead_isRejected() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ScheduleId.next(Instant.MAX))
                .withMessageContaining("more than 3653 days ahead");
    }

    @Test
    void due_otherId_isRejected() {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> ScheduleId.due(UUID.randomUUID()))
                .withMessageContaining("must be the id of a scheduled event");
    }
}
