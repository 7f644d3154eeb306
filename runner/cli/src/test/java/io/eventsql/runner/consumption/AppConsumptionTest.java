package io.eventsql.runner.consumption;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerPosition;
import io.eventsql.EventSqlException;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.testing.ManualClock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class AppConsumptionTest {
    private final ManualClock clock = new ManualClock();
    private final StopSignal stop = new StopSignal();
    private final List<String> lines = new ArrayList<>();

    @Test
    void await_consumerCatchesUp_reportsItsPositionEachSecond() {
        assertThat(await(() -> List.of(
                        position(0, 1, 500, 500), position(0, 2, 2_588_597 + 500 * elapsed() / 1_000, 2_590_000))))
                .isTrue();

        assertThat(lines)
                .containsExactly(
                        "Consumer of 2 partition is at the event 2589097, but latest event is 2590000; waiting for 1s...",
                        "Consumer of 2 partition is at the event 2589597, but latest event is 2590000; waiting for 1s...");
    }

    @Test
    void await_severalShards_namesTheShard() {
        await(() -> List.of(position(0, 2, 7, 7), position(1, 2, elapsed() < 2_000 ? 5 : 7, 7)));

        assertThat(lines)
                .first()
                .isEqualTo(
                        "Consumer of 2 partition is at the event 5, but latest event is 7 (shard 1); waiting for 1s...");
    }

    @Test
    void await_othersKeepPublishing_waitsOnlyForEarlierEvents() {
        assertThat(await(() -> List.of(position(0, 0, 100 + elapsed(), 1_000 + 10 * elapsed()))))
                .isTrue();

        assertThat(elapsed()).isBetween(900L, 950L);
    }

    @Test
    void await_timeout_isFalseAndReportsTheBacklog() {
        assertThat(await(() -> List.of(position(0, 4, 1, 9)))).isFalse();

        assertThat(elapsed()).isBetween(10_000L, 10_100L);
        assertThat(lines)
                .last()
                .isEqualTo(
                        "Not everything was consumed within 10 s: Consumer of 4 partition is at the event 1, but latest"
                                + " event is 9");
    }

    @Test
    void await_positionsFailTemporarily_retries() {
        assertThat(await(() -> {
                    if (elapsed() < 3_000) {
                        throw new EventSqlException("shard 1 is unavailable");
                    }
                    return List.of(position(0, 0, 3, 3));
                }))
                .isTrue();

        assertThat(lines).first().asString().contains("shard 1 is unavailable");
    }

    @Test
    void await_noPositionsYet_doesNotCountAsConsumed() {
        assertThat(await(List::of)).isFalse();
    }

    @Test
    void await_stopSignal_isFalse() {
        stop.raise(StopSignal.Reason.INTERRUPTED);

        assertThat(await(() -> List.of(position(0, 0, 0, 1)))).isFalse();
        assertThat(elapsed()).isZero();
    }

    private boolean await(Supplier<List<ConsumerPosition>> positions) {
        return new AppConsumption(positions, clock, lines::add).await(Duration.ofSeconds(10), stop);
    }

    private static ConsumerPosition position(int shard, int partition, long next, long head) {
        return new ConsumerPosition(shard, partition, Math.min(next, head), head, 0, 1);
    }

    private long elapsed() {
        return (clock.nanos() - ManualClock.START_NANOS) / 1_000_000;
    }
}
