package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

class RetentionTest {
    private static void assertRejected(String field, ThrowingCallable call) {
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(call)
                .extracting(InvalidInputException::field)
                .isEqualTo(field);
    }

    @Test
    void with_eachLimit_changesOnlyIt() {
        Duration day = Duration.ofDays(1);
        assertThat(Retention.FOREVER
                        .withMaxAge(day)
                        .withMaxBytes(2)
                        .withMaxEvents(3)
                        .withExpireHandled()
                        .withAbandonedAfter(day))
                .isEqualTo(new Retention(day, 2L, 3L, true, day));
        assertThat(Retention.FOREVER.abandonedAfter()).isEqualTo(Duration.ofDays(7));
        assertThat(Retention.FOREVER.withAbandonedAfter(day).isForever()).isTrue();
        assertThat(Retention.FOREVER.withMaxEvents(1).isForever()).isFalse();
        assertThat(Retention.FOREVER.withExpireHandled().isForever()).isFalse();
    }

    /** The database stores milliseconds: a definition that was read equals the one that was stored. */
    @Test
    void times_areTruncatedToMilliseconds() {
        Duration time = Duration.ofMillis(1_500).plusNanos(7);
        assertThat(Retention.FOREVER.withMaxAge(time).maxAge()).isEqualTo(Duration.ofMillis(1_500));
        assertThat(Retention.FOREVER.withAbandonedAfter(time).abandonedAfter()).isEqualTo(Duration.ofMillis(1_500));
    }

    @Test
    void limits_outOfRange_areRejected() {
        assertRejected("retention.maxAge", () -> Retention.FOREVER.withMaxAge(Duration.ofMillis(999)));
        assertRejected("retention.maxAge", () -> Retention.FOREVER.withMaxAge(Duration.ofDays(36_501)));
        assertRejected("retention.maxAge", () -> Retention.FOREVER.withMaxAge(null));
        assertRejected("retention.maxBytes", () -> Retention.FOREVER.withMaxBytes(0));
        assertRejected("retention.maxEvents", () -> Retention.FOREVER.withMaxEvents(-1));
        assertRejected("retention.abandonedAfter", () -> Retention.FOREVER.withAbandonedAfter(Duration.ZERO));
        assertRejected("stream.retention", () -> StreamSpec.of("a").withRetention(null));
    }
}
