package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HeartbeatScheduleTest {
    private final HeartbeatSchedule schedule = new HeartbeatSchedule();

    @Test
    void await_first_isDueAtOnce() throws InterruptedException {
        assertThat(schedule.await().heartbeat()).isTrue();
    }

    @Test
    void await_releaseRequested_isNoHeartbeat() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime() + TimeUnit.HOURS.toNanos(1));
        schedule.requestRelease();

        assertThat(schedule.await().heartbeat()).isFalse();
    }

    @Test
    void await_bothRequested_isAHeartbeat() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime() + TimeUnit.HOURS.toNanos(1));
        schedule.requestHeartbeat();
        schedule.requestRelease();

        assertThat(schedule.await().heartbeat()).isTrue();
    }

    @Test
    void await_requestedForConsumers_isAHeartbeatOfTheirMembers() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime() + TimeUnit.HOURS.toNanos(1));
        schedule.requestHeartbeat(7);
        schedule.requestHeartbeat(8);

        HeartbeatSchedule.Due due = schedule.await();

        assertThat(due.heartbeat()).isTrue();
        assertThat(due.isRequestedFor(7)).isTrue();
        assertThat(due.isRequestedFor(8)).isTrue();
        assertThat(due.isRequestedFor(9)).isFalse();
        schedule.requestHeartbeat();
        assertThat(schedule.await().isRequestedFor(9)).isTrue();
    }

    @Test
    void scheduleWithin_later_changesNothing() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime());
        schedule.scheduleWithin(TimeUnit.HOURS.toNanos(1));

        assertThat(schedule.await().heartbeat()).isTrue();
    }

    @Test
    void scheduleWithin_earlier_movesItForward() throws InterruptedException {
        schedule.scheduleAt(System.nanoTime() + TimeUnit.HOURS.toNanos(1));
        schedule.scheduleWithin(0);

        assertThat(schedule.await().heartbeat()).isTrue();
    }
}
