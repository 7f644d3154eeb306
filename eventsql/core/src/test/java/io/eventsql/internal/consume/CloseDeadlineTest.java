package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** How a timeout is divided between running handlers and the steps after them. */
class CloseDeadlineTest {
    @Test
    void after_default_reservesFiveSecondsOfTheTimeout() {
        assertReserve(Duration.ofSeconds(25), Duration.ofSeconds(5));
        assertReserve(Duration.ofMinutes(10), Duration.ofSeconds(5));
    }

    @Test
    void after_shorterTimeout_reservesAFifthAtLeastOneSecond() {
        assertReserve(Duration.ofSeconds(10), Duration.ofSeconds(2));
        assertReserve(Duration.ofSeconds(1), Duration.ofSeconds(1));
        assertReserve(Duration.ZERO, Duration.ofSeconds(1));
    }

    @Test
    void after_timeout_isTheEnd() {
        long before = System.nanoTime();
        CloseDeadline deadline = CloseDeadline.after(Duration.ofSeconds(25));
        long after = System.nanoTime();
        assertThat(deadline.endNanos() - Duration.ofSeconds(25).toNanos()).isBetween(before, after);
    }

    @Test
    void after_timeoutOfAnyLength_isInTheFuture() {
        long now = System.nanoTime();
        long years = Duration.ofDays(3_650).toNanos();
        assertThat(CloseDeadline.after(Duration.ofSeconds(Long.MAX_VALUE)).handlersNanos() - now)
                .isGreaterThan(years);
        assertThat(CloseDeadline.after(Duration.ofSeconds(Long.MIN_VALUE)).endNanos() - now)
                .isPositive();
    }

    private static void assertReserve(Duration timeout, Duration reserve) {
        CloseDeadline deadline = CloseDeadline.after(timeout);
        assertThat(deadline.endNanos() - deadline.handlersNanos()).isEqualTo(reserve.toNanos());
    }
}
