package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HeartbeatScheduleTest {
    private final HeartbeatSchedule schedule = new HeartbeatSchedule();

    @Test
    void await_first_isDueAtOnce() throws InterruptedException {
        assertThat(schedule.await()).isTrue();
    }

    @Test
    void await_releaseRequested_isNoHeartbeat() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime() + TimeUnit.HOURS.toNanos(1));
        schedule.requestRelease();

        assertThat(schedule.await()).isFalse();
    }

    @Test
    void await_bothRequested_isAHeartbeat() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime() + TimeUnit.HOURS.toNanos(1));
        schedule.requestHeartbeat();
        schedule.requestRelease();

        assertThat(schedule.await()).isTrue();
    }

    @Test
    void scheduleWithin_later_changesNothing() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime());
        schedule.scheduleWithin(TimeUnit.HOURS.toNanos(1));

        assertThat(schedule.await()).isTrue();
    }

    @Test
    void scheduleWithin_earlier_movesItForward() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime() + TimeUnit.HOURS.toNanos(1));
        schedule.scheduleWithin(0);

        assertThat(schedule.await()).isTrue();
    }
}
