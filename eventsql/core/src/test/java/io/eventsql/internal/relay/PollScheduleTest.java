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
    private final PollSchedule looks = new PollSchedule(() -> nowNanos);

    private long untilNextMs() {
        return TimeUnit.NANOSECONDS.toMillis(looks.untilNextNanos());
    }

    /** Lets the time pass until the next look, makes it, and finds nothing. */
    private long lookInVain() throws InterruptedException {
        long waited = untilNextMs();
        nowNanos += looks.untilNextNanos();
        looks.await();
        looks.foundNothing(0, POLL);
        return waited;
    }

    @Test
    void new_looksAtOnce() {
        assertThat(untilNextMs()).isZero();
    }

    @Test
    void published_looksMoreAndMoreRarelyThenPolls() throws InterruptedException {
        lookInVain();
        assertThat(untilNextMs()).isEqualTo(1_000);
        looks.published();
        List<Long> pauses = new ArrayList<>();
        for (int look = 0; look < 13; look++) {
            pauses.add(lookInVain());
        }
        assertThat(pauses).containsExactly(1L, 1L, 2L, 4L, 8L, 16L, 32L, 64L, 128L, 256L, 512L, 1_000L, 1_000L);
    }

    @Test
    void published_again_beginsAnew() throws InterruptedException {
        looks.published();
        for (int look = 0; look < 6; look++) {
            lookInVain();
        }
        looks.published();
        assertThat(untilNextMs()).isEqualTo(1);
    }

    @Test
    void committed_looksAtOnce() throws InterruptedException {
        lookInVain();
        looks.committed();
        assertThat(untilNextMs()).isZero();
        assertThat(looks.await()).as("hinted").isTrue();
    }

    @Test
    void hintDuringALook_isNotForgotten() throws InterruptedException {
        assertThat(looks.await()).isFalse();
        looks.published(); // while the look is under way: it may have come too late for it
        looks.next(Duration.ofMinutes(1), Duration.ofMillis(5));
        assertThat(untilNextMs()).isEqualTo(5);
        nowNanos += looks.untilNextNanos();
        assertThat(looks.await()).as("hinted").isTrue();
        assertThat(looks.await()).as("told once").isFalse();
    }

    @Test
    void found_pausesTwiceAsLongAsItTookWithinLimits() {
        looks.found(TimeUnit.MICROSECONDS.toNanos(10));
        assertThat(untilNextMs()).isEqualTo(1);
        looks.found(TimeUnit.MILLISECONDS.toNanos(3));
        assertThat(untilNextMs()).isEqualTo(6);
        looks.found(TimeUnit.SECONDS.toNanos(3));
        assertThat(untilNextMs()).isEqualTo(10);
        looks.committed();
        assertThat(untilNextMs()).as("not before").isEqualTo(10);
    }

    @Test
    void foundNothing_aLongLook_isNotRepeatedAtOnce() {
        looks.published();
        looks.foundNothing(TimeUnit.MILLISECONDS.toNanos(50), POLL);
        assertThat(untilNextMs()).isEqualTo(100);
    }

    @Test
    void close_endsTheWaiting() throws InterruptedException {
        lookUntilPoll();
        looks.close();
        assertThat(looks.await()).isFalse();
        assertThat(looks.isClosed()).isTrue();
    }

    private void lookUntilPoll() {
        looks.foundNothing(0, POLL);
    }
}
