package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StreamSpec;
import io.eventsql.internal.append.TestCalls.Call;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Forming of batches. {@code pending} has two lanes: even and odd partitions. */
class PendingCallsTest {
    private static final int MANY = PendingCalls.SHARED_ABOVE_EVENTS + 1;
    private static final StreamSpec ONE_PARTITION = StreamSpec.of("small").withPartitions(1);

    private final PendingCalls pending = new PendingCalls(2, 1_000_000, 1L << 40);

    private static Call add(PendingCalls pending, Call call) {
        pending.add(call.call);
        return call;
    }

    private Call add(int... partitions) {
        return add(pending, TestCalls.call(partitions));
    }

    private Call addWithoutKey(int events) {
        return add(pending, TestCalls.callWithoutKey(events));
    }

    /** Returns a call with enough events of one partition to append several batches concurrently. */
    private Call addMany(int partition) {
        return add(IntStream.generate(() -> partition).limit(MANY).toArray());
    }

    private static void assertCalls(Batch batch, Call... calls) {
        assertThat(batch).isNotNull();
        assertThat(batch.calls()).containsExactlyElementsOf(TestCalls.calls(calls));
    }

    @Test
    void takeBatch_nothingWaits_returnsNull() {
        assertThat(pending.takeBatch()).isNull();
    }

    @Test
    void takeBatch_fewEventsWait_takesAllInCallOrder() {
        Call a = add(0);
        Call b = addWithoutKey(1);
        Call c = add(1);
        Call wide = add(0, 1);
        Call d = add(2, 4);
        assertCalls(pending.takeBatch(), a, b, c, wide, d);
        assertThat(pending.calls()).isZero();
        assertThat(pending.hasFreeLane()).isFalse();
    }

    @Test
    void takeBatch_allLanesBusy_returnsNull() {
        add(0);
        Batch all = pending.takeBatch();
        add(0);
        add(1);
        addWithoutKey(1);
        assertThat(pending.takeBatch()).isNull();
        pending.done(all);
        assertThat(pending.takeBatch().calls()).hasSize(3);
    }

    @Test
    void takeBatch_manyEventsWait_lanesAreTakenConcurrently() {
        Call even = addMany(0);
        Call odd = addMany(1);
        assertCalls(pending.takeBatch(), even);
        assertThat(pending.hasFreeLane()).isTrue();
        assertCalls(pending.takeBatch(), odd);
        assertThat(pending.hasFreeLane()).isFalse();
    }

    @Test
    void takeBatch_laneBusy_takesOnlyCallsOfOtherLanes() {
        addMany(0);
        addMany(1);
        Batch even = pending.takeBatch();
        Batch odd = pending.takeBatch();
        Call nextEven = add(2);
        Call nextOdd = add(3);
        pending.done(odd);
        assertCalls(pending.takeBatch(), nextOdd);
        pending.done(even);
        assertCalls(pending.takeBatch(), nextEven);
    }

    @Test
    void takeBatch_fourBatchesWithoutKeys_needTwoCommits() {
        Call[] calls = new Call[4];
        for (int i = 0; i < calls.length; i++) {
            calls[i] = addWithoutKey(100);
        }
        assertCalls(pending.takeBatch(), calls[0], calls[1]);
        assertCalls(pending.takeBatch(), calls[2], calls[3]);
    }

    @Test
    void takeBatch_asManyEventsWithKeys_needOneCommit() {
        Call[] calls = new Call[4];
        for (int i = 0; i < calls.length; i++) {
            int partition = i;
            calls[i] = add(IntStream.generate(() -> partition).limit(100).toArray());
        }
        assertCalls(pending.takeBatch(), calls);
    }

    @Test
    void takeBatch_manyEventsWithoutKeys_areSharedByTheLanes() {
        List<Call> calls = new ArrayList<>();
        for (int i = 0; i < 2 * MANY; i++) {
            calls.add(addWithoutKey(1));
        }
        Batch first = pending.takeBatch();
        Batch second = pending.takeBatch();
        assertThat(first.calls()).hasSizeBetween(MANY / 2, MANY);
        assertThat(second.calls()).isNotEmpty();
        assertThat(first.partition(first.calls().get(0), 0) % 2)
                .isNotEqualTo(second.partition(second.calls().get(0), 0) % 2);
    }

    @Test
    void takeBatch_numbers_increase() {
        add(0);
        Batch first = pending.takeBatch();
        long part = pending.nextBatchNumber();
        pending.done(first);
        add(0);
        assertThat(first.number()).isPositive().isLessThan(part);
        assertThat(pending.takeBatch().number()).isGreaterThan(part);
    }

    @Test
    void takeBatch_eventLimit_isKeptWithoutReordering() {
        PendingCalls limited = new PendingCalls(2, 3, 1L << 40);
        Call one = add(limited, TestCalls.call(0, 0));
        Call two = add(limited, TestCalls.call(0, 0));
        Call three = add(limited, TestCalls.call(0));
        Call four = add(limited, TestCalls.call(1));
        Batch batch = limited.takeBatch();
        assertCalls(batch, one);
        limited.done(batch);
        Batch next = limited.takeBatch();
        assertCalls(next, two, three);
        limited.done(next);
        assertCalls(limited.takeBatch(), four);
    }

    @Test
    void takeBatch_byteLimit_isKept() {
        PendingCalls limited = new PendingCalls(1, 1_000, 3 * TestCalls.EVENT_BYTES);
        Call one = add(limited, TestCalls.call(0));
        Call two = add(limited, TestCalls.call(0, 1));
        Call three = add(limited, TestCalls.call(2));
        Batch batch = limited.takeBatch();
        assertCalls(batch, one, two);
        limited.done(batch);
        assertCalls(limited.takeBatch(), three);
    }

    @Test
    void takeBatch_callLargerThanABatch_isTakenAlone() {
        PendingCalls limited = new PendingCalls(1, 2, 2 * TestCalls.EVENT_BYTES);
        Call large = add(limited, TestCalls.call(0, 0, 0));
        Call small = add(limited, TestCalls.call(0));
        Batch batch = limited.takeBatch();
        assertCalls(batch, large);
        limited.done(batch);
        assertCalls(limited.takeBatch(), small);
    }

    @Test
    void takeBatch_wideCall_waitsForEarlierBatches() {
        Call even = addMany(0);
        Call odd = addMany(1);
        Batch evenBatch = pending.takeBatch();
        Batch oddBatch = pending.takeBatch();
        assertCalls(evenBatch, even);
        assertCalls(oddBatch, odd);
        Call wide = add(0, 1);
        pending.done(evenBatch);
        assertThat(pending.takeBatch()).isNull();
        pending.done(oddBatch);
        assertCalls(pending.takeBatch(), wide);
    }

    @Test
    void takeBatch_wideCall_isNotOvertaken() {
        addMany(0);
        addMany(1);
        Batch even = pending.takeBatch();
        Batch odd = pending.takeBatch();
        Call before = add(1);
        Call wide = add(0, 1);
        Call after = add(1);
        pending.done(odd);
        Batch beforeBatch = pending.takeBatch();
        assertCalls(beforeBatch, before);
        pending.done(beforeBatch);
        assertThat(pending.takeBatch()).isNull();
        pending.done(even);
        assertCalls(pending.takeBatch(), wide, after);
    }

    @Test
    void takeBatch_wideCallAmongManyEvents_isTakenInOrder() {
        Call before = addMany(0);
        Call wide = add(0, 1);
        Call after = addMany(1);
        assertCalls(pending.takeBatch(), before, wide, after);
    }

    @Test
    void takeBatch_continuousWideCalls_othersDoNotStarve() {
        PendingCalls limited = new PendingCalls(2, 4, 1L << 40);
        add(limited, TestCalls.call(0, 1));
        Call withoutKey = add(limited, TestCalls.callWithoutKey(1));
        Call single = add(limited, TestCalls.call(1));
        List<PublishCall> taken = new ArrayList<>();
        for (int round = 0; round < 2; round++) {
            add(limited, TestCalls.call(0, 1));
            add(limited, TestCalls.call(1, 2));
            Batch batch = limited.takeBatch();
            taken.addAll(batch.calls());
            limited.done(batch);
        }
        assertThat(taken).contains(withoutKey.call, single.call);
    }

    @ParameterizedTest
    @CsvSource({"1, 8", "2, 8", "3, 8", "3, 7", "8, 8"})
    void takeBatch_callsWithoutKeys_useAllPartitionsInTurn(int lanes, int partitions) {
        StreamSpec stream = StreamSpec.of("orders").withPartitions(partitions);
        PendingCalls some = new PendingCalls(lanes, 1_000_000, 1L << 40);
        Set<Integer> used = new HashSet<>();
        for (int round = 0; round < partitions; round++) {
            Call first = add(some, TestCalls.callWithoutKey(stream, 1));
            Call second = add(some, TestCalls.callWithoutKey(stream, 3));
            Batch batch = some.takeBatch();
            int partition = batch.partition(first.call, 0);
            assertThat(IntStream.range(0, 3).map(i -> batch.partition(second.call, i)))
                    .as("one partition a batch")
                    .containsOnly(partition);
            used.add(partition);
            some.done(batch);
        }
        assertThat(used).hasSize(partitions);
    }

    @ParameterizedTest
    @CsvSource({"2, 8", "3, 8", "3, 7", "8, 8"})
    void takeBatch_callsWithoutKeysAndBusyLanes_useAllPartitionsOfTheFreeLanesInTurn(int lanes, int partitions) {
        StreamSpec stream = StreamSpec.of("orders").withPartitions(partitions);
        PendingCalls some = new PendingCalls(lanes, 1_000_000, 1L << 40);
        Set<Integer> used = new HashSet<>();
        for (int round = 0; round < partitions; round++) {
            List<Batch> underWay = new ArrayList<>();
            for (int lane = 0; lane < lanes; lane++) {
                add(some, TestCalls.callWithoutKey(stream, MANY * lanes));
                Batch batch = some.takeBatch();
                underWay.add(batch);
                used.add(batch.partition(batch.calls().get(0), 0));
            }
            assertThat(underWay.stream().mapToInt(b -> b.partition(b.calls().get(0), 0) % lanes))
                    .as("each of a lane of its own")
                    .doesNotHaveDuplicates();
            underWay.forEach(some::done);
        }
        assertThat(used).hasSize(partitions);
    }

    @Test
    void takeBatch_laneWithoutPartitionOfTheStream_leavesItsCallsToTheOther() {
        addMany(0);
        Batch even = pending.takeBatch();
        Call ofPartitionZero = add(pending, TestCalls.callWithoutKey(ONE_PARTITION, 1));
        Call odd = addMany(1);
        Batch oddBatch = pending.takeBatch();
        assertCalls(oddBatch, odd);
        assertThat(pending.takeBatch()).isNull();
        pending.done(even);
        Batch last = pending.takeBatch();
        assertCalls(last, ofPartitionZero);
        assertThat(last.partition(ofPartitionZero.call, 0)).isZero();
    }

    @Test
    void takeBatch_manyCallsWithoutKeysOfOnePartition_areAllTaken() {
        for (int i = 0; i < 3 * MANY; i++) {
            add(pending, TestCalls.callWithoutKey(ONE_PARTITION, 1));
        }
        List<Batch> underWay = new ArrayList<>();
        for (int batches = 0; pending.calls() > 0; batches++) {
            assertThat(batches).isLessThan(100);
            for (Batch batch = pending.takeBatch(); batch != null; batch = pending.takeBatch()) {
                underWay.add(batch);
            }
            assertThat(underWay).as("one batch of the partition at a time").hasSize(1);
            pending.done(underWay.removeFirst());
        }
    }

    @Test
    void removeExpired_everyKindOfCall_isRemovedAtItsDeadline() {
        long deadline = System.nanoTime();
        List<Call> calls = List.of(
                add(pending, TestCalls.callUntil(deadline, 0)),
                add(pending, TestCalls.callUntil(deadline, 1)),
                add(pending, TestCalls.callUntil(deadline)),
                add(pending, TestCalls.callUntil(deadline, 0, 1)));
        List<PublishCall> expired = new ArrayList<>();
        pending.removeExpired(deadline - 1, expired::add);
        assertThat(expired).isEmpty();
        pending.removeExpired(deadline, expired::add);
        assertThat(expired)
                .containsExactlyInAnyOrderElementsOf(
                        calls.stream().map(c -> c.call).toList());
        assertThat(pending.calls()).isZero();
        assertThat(pending.takeBatch()).isNull();
    }

    /** Such calls exist: those that were blocked by a full buffer, and those rerouted from another shard. */
    @Test
    void removeExpired_earlierDeadlineAfterALaterOne_isFound() {
        long deadline = System.nanoTime();
        Call first = add(pending, TestCalls.callUntil(deadline + 1_000_000_000, 0));
        Call behind = add(pending, TestCalls.callUntil(deadline, 0));
        List<PublishCall> expired = new ArrayList<>();
        pending.removeExpired(deadline, expired::add);
        assertThat(expired).containsExactly(behind.call);
        assertCalls(pending.takeBatch(), first);
    }

    @Test
    void removeExpired_nanoTimeOverflows_worksCorrectly() {
        add(pending, TestCalls.callUntil(Long.MAX_VALUE, 0));
        List<PublishCall> expired = new ArrayList<>();
        pending.removeExpired(Long.MAX_VALUE - 10, expired::add);
        assertThat(expired).isEmpty();
        pending.removeExpired(Long.MIN_VALUE + 10, expired::add);
        assertThat(expired).hasSize(1);
    }

    @Test
    void removeWithoutKeys_removesOnlyCallsWithoutKeys() {
        Call keyed = add(0);
        Call withoutKey = addWithoutKey(1);
        Call wide = add(0, 1);
        Call ofSmallStream = add(pending, TestCalls.callWithoutKey(ONE_PARTITION, 1));
        assertThat(pending.removeWithoutKeys())
                .containsExactlyInAnyOrderElementsOf(TestCalls.calls(withoutKey, ofSmallStream))
                .noneMatch(PublishCall::isSent);
        assertThat(pending.removeWithoutKeys()).isEmpty();
        assertCalls(pending.takeBatch(), keyed, wide);
    }
}
