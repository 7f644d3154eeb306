package io.eventsql.runner.consumption;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.EventSqlException;
import io.eventsql.PartitionState;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.testing.ManualClock;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class RebalanceWaitTest {
    private final ManualClock clock = new ManualClock();
    private final StopSignal stop = new StopSignal();
    private final List<String> lines = new ArrayList<>();

    @Test
    void await_oneMember_isNotWaitedFor() throws IOException {
        assertThat(await(1, () -> {
                    throw new AssertionError("unexpected call");
                }))
                .isTrue();
    }

    @Test
    void await_membersJoinOneByOne_endsWhenAllHaveTheirShare() throws IOException {
        assertThat(await(3, () -> {
                    if (elapsed() < 500) {
                        return List.of();
                    }
                    if (elapsed() < 1_000) {
                        throw new EventSqlException("shard 1 is unavailable");
                    }
                    if (elapsed() < 2_000) {
                        return shard(0, "a", "a", "a", "b", "b", "b", null);
                    }
                    if (elapsed() < 3_000) {
                        return shard(0, "a", "a", "c", "b", "b", "b", null);
                    }
                    return shard(0, "a", "a", "c", "b", "b", "b", "c");
                }))
                .isTrue();

        assertThat(elapsed()).isEqualTo(3_000);
        assertThat(lines)
                .containsExactly(
                        "3 members do not share the consumer's partitions yet: on shard 0 a holds 3, b holds 3, 1 of 7"
                                + " unassigned; waiting for 1s...",
                        "3 members do not share the consumer's partitions yet: on shard 0 a holds 2, b holds 3, c holds"
                                + " 1, 1 of 7 unassigned; waiting for 1s...");
    }

    @Test
    void await_unevenOnOneOfSeveralShards_namesTheShardAfterTheTimeout() {
        List<PartitionState> state = Stream.concat(
                        shard(0, "a", "b", "a", "b").stream(), shard(1, "a", "a", "a", "b").stream())
                .toList();

        assertThatThrownBy(() -> await(2, () -> state))
                .isInstanceOf(IOException.class)
                .hasMessage("2 members do not share the consumer's partitions after 10 s: on shard 1 a holds 3, b holds"
                        + " 1, 0 of 4 unassigned");
        assertThat(elapsed()).isBetween(10_000L, 10_200L);
    }

    @Test
    void await_moreMembersThanExpected_timesOut() {
        assertThatThrownBy(() -> await(2, () -> shard(0, "a", "b", "c", "a")))
                .hasMessageContaining("a holds 2, b holds 1, c holds 1");
    }

    @Test
    void await_moreMembersThanPartitions_someHaveNone() throws IOException {
        assertThat(await(3, () -> shard(0, "b", "a"))).isTrue();
    }

    @Test
    void await_stopSignal_isFalse() throws IOException {
        stop.raise(StopSignal.Reason.INTERRUPTED);

        assertThat(await(2, List::of)).isFalse();
        assertThat(await(1, List::of)).isFalse();
    }

    private boolean await(int members, Supplier<List<PartitionState>> state) throws IOException {
        return new RebalanceWait(state, members, clock, lines::add).await(Duration.ofSeconds(10), stop);
    }

    /** @param members the holder of each partition; {@code null} if unassigned */
    private static List<PartitionState> shard(int shard, String... members) {
        List<String> holders = Arrays.asList(members);
        return IntStream.range(0, holders.size())
                .mapToObj(partition -> new PartitionState(
                        shard,
                        partition,
                        PartitionState.Status.RUNNING,
                        null,
                        0,
                        0,
                        0,
                        Duration.ZERO,
                        Instant.EPOCH,
                        1,
                        holders.get(partition),
                        null,
                        0,
                        0))
                .toList();
    }

    private long elapsed() {
        return (clock.nanos() - ManualClock.START_NANOS) / 1_000_000;
    }
}
