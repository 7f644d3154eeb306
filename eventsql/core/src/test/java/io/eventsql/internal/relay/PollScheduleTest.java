package io.eventsql.internal.relay;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PollScheduleTest {
    private static final Duration POLL = Duration.ofSeconds(1);

    private long nowNanos = 1_000_000_000_000L;
    private final PollSchedule schedule = new PollSchedule(() -> nowNanos);

    private long untilNextMs() {
        return TimeUnit.NANOSECONDS.toMillis(schedule.untilNextNanos());
    }

    /** Advances the clock to the next poll, which finds nothing; returns the time waited in milliseconds. */
    private long pollFindingNothing() throws InterruptedException {
        long waited = untilNextMs();
        nowNanos += schedule.untilNextNanos();
        schedule.await();
        schedule.foundNothing(0, POLL);
        return waited;
    }

    @Test
    void new_pollsImmediately() {
        assertThat(untilNextMs()).isZero();
    }

    @Test
    void published_pollsWithGrowingPausesUpToThePollInterval() throws InterruptedException {
        pollFindingNothing();
        assertThat(untilNextMs()).isEqualTo(1_000);
        schedule.published();
        List<Long> pauses = new ArrayList<>();
        for (int poll = 0; poll < 13; poll++) {
            pauses.add(pollFindingNothing());
        }
        assertThat(pauses).containsExactly(1L, 1L, 2L, 4L, 8L, 16L, 32L, 64L, 128L, 256L, 512L, 1_000L, 1_000L);
    }

    @Test
    void published_again_restartsThePauses() throws InterruptedException {
        schedule.published();
        for (int poll = 0; poll < 6; poll++) {
            pollFindingNothing();
        }
        schedule.published();
        assertThat(untilNextMs()).isEqualTo(1);
    }

    @Test
    void committed_pollsImmediately() throws InterruptedException {
        pollFindingNothing();
        schedule.committed();
        assertThat(untilNextMs()).isZero();
        assertThat(schedule.await()).as("hinted").isTrue();
    }

    @Test
    void hintDuringAPoll_isNotLost() throws InterruptedException {
        assertThat(schedule.await()).isFalse();
        schedule.published(); // during the poll, for which it may be too late
        schedule.scheduleNext(Duration.ofMinutes(1), Duration.ofMillis(5));
        assertThat(untilNextMs()).isEqualTo(5);
        nowNanos += schedule.untilNextNanos();
        assertThat(schedule.await()).as("hinted").isTrue();
        assertThat(schedule.await()).as("reported once").isFalse();
    }

    @Test
    void found_pausesTwiceTheDurationOfThePollWithinLimits() {
        schedule.found(TimeUnit.MICROSECONDS.toNanos(10));
        assertThat(untilNextMs()).isEqualTo(1);
        schedule.found(TimeUnit.MILLISECONDS.toNanos(3));
        assertThat(untilNextMs()).isEqualTo(6);
        schedule.found(TimeUnit.SECONDS.toNanos(3));
        assertThat(untilNextMs()).isEqualTo(10);
        schedule.committed();
        assertThat(untilNextMs()).as("not before").isEqualTo(10);
    }

    @Test
    void foundNothing_longPoll_isNotRepeatedImmediately() {
        schedule.published();
        schedule.foundNothing(TimeUnit.MILLISECONDS.toNanos(50), POLL);
        assertThat(untilNextMs()).isEqualTo(100);
    }

    @Test
    void close_waitingThread_returns() throws InterruptedException {
        scheduleAtPollInterval();
        schedule.close();
        assertThat(schedule.await()).isFalse();
        assertThat(schedule.isClosed()).isTrue();
    }

    private void scheduleAtPollInterval() {
        schedule.foundNothing(0, POLL);
    }

    @Test
    void wakeIn_pollsThenUnlessEarlier_butNotBeforeTheMinimumPause() throws InterruptedException {
        pollFindingNothing();
        schedule.wakeIn(TimeUnit.MILLISECONDS.toNanos(300));
        assertThat(untilNextMs()).isEqualTo(300);
        schedule.wakeIn(TimeUnit.MILLISECONDS.toNanos(700));
        assertThat(untilNextMs()).isEqualTo(300);

        schedule.scheduleNext(POLL, Duration.ofMillis(20));
        schedule.wakeIn(-1);
        assertThat(untilNextMs()).isEqualTo(20);
    }

    @Test
    void wakeIn_isNoHintOfPublishedEvents() throws InterruptedException {
        pollFindingNothing();
        schedule.wakeIn(0);
        assertThat(schedule.await()).isFalse();
    }
}
