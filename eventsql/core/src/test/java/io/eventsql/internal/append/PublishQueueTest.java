package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.internal.append.TestCalls.Call;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The queue without a database. Whether a thread waits is determined by its state, never by time. */
@Timeout(60)
class PublishQueueTest {
    private static final int EVENT_BYTES = TestCalls.EVENT_BYTES;
    private static final long FAR = TestCalls.FAR;

    private final List<Thread> threads = new ArrayList<>();

    @AfterEach
    void endThreads() {
        threads.forEach(Thread::interrupt);
    }

    private static PublishQueue queue(int lanes) {
        return queue(lanes, 1L << 40);
    }

    private static PublishQueue queue(int lanes, long bufferBytes) {
        return new PublishQueue(
                new PendingCalls(lanes, 1_000_000, 1L << 40),
                new CommitPace(0),
                bufferBytes,
                TestCalls.routing(TestCalls::map));
    }

    private static Call put(PublishQueue queue, Call call) {
        queue.put(call.call);
        return call;
    }

    private static void assertCalls(Batch batch, Call... calls) {
        assertThat(batch.calls()).containsExactlyElementsOf(TestCalls.calls(calls));
    }

    /** Finishes a batch, or none, and takes the next one in a thread of its own. */
    private final class Taker {
        final CompletableFuture<Batch> batch = new CompletableFuture<>();
        final Thread thread;

        Taker(PublishQueue queue, Batch last) {
            thread = start(() -> batch.complete(queue.finishAndTake(last)));
        }

        /** Returns once the thread waits because there is nothing to take. */
        Taker awaitWaiting() {
            await().until(() -> batch.isDone() || thread.getState() == Thread.State.WAITING);
            assertThat(batch).isNotDone();
            return this;
        }

        Batch get() throws Exception {
            return batch.get(120, TimeUnit.SECONDS);
        }
    }

    private interface Task {
        void run() throws Exception;
    }

    private Thread start(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (Exception e) {
                Thread.currentThread().interrupt();
            }
        });
        threads.add(thread);
        thread.start();
        return thread;
    }

    private static void awaitBlocked(Thread thread) {
        await().until(() -> thread.getState() == Thread.State.TIMED_WAITING);
    }

    @Test
    void finishAndTake_nothingWaits_blocksUntilACallIsAdded() throws Exception {
        PublishQueue queue = queue(2);
        Taker taker = new Taker(queue, null).awaitWaiting();
        Call call = put(queue, TestCalls.call(3));
        assertCalls(taker.get(), call);
    }

    @Test
    void put_severalThreadsWait_theLastOneTakesTheCall() throws Exception {
        PublishQueue queue = queue(2);
        Taker first = new Taker(queue, null).awaitWaiting();
        Taker second = new Taker(queue, null).awaitWaiting();
        Call one = put(queue, TestCalls.call(0));
        assertCalls(second.get(), one);
        Taker again = new Taker(queue, second.get()).awaitWaiting();
        Call two = put(queue, TestCalls.call(1));
        assertCalls(again.get(), two);
        assertThat(first.batch).isNotDone();
    }

    @Test
    void finishAndTake_partitionInProgress_itsNextCallWaits() throws Exception {
        PublishQueue queue = queue(1);
        put(queue, TestCalls.call(0));
        Batch first = queue.finishAndTake(null);
        Call second = put(queue, TestCalls.call(0));
        Taker other = new Taker(queue, null).awaitWaiting();
        assertThat(other.batch).isNotDone();
        Taker last = new Taker(queue, first);
        await().until(() -> last.batch.isDone() || other.batch.isDone());
        assertCalls(last.batch.isDone() ? last.get() : other.get(), second);
    }

    /** A queue whose commits are delayed for minutes. */
    private static PublishQueue queueOfBusyDatabase() {
        CommitPace pace = new CommitPace(FAR, FAR);
        long now = System.nanoTime();
        pace.recordCommit(1, 1, 1, now);
        pace.recordCommit(1, 1, FAR, now);
        assertThat(pace.remainingNanos(now)).isGreaterThan(TimeUnit.MINUTES.toNanos(10));
        return new PublishQueue(
                new PendingCalls(2, 1_000_000, 1L << 40), pace, 1L << 40, TestCalls.routing(TestCalls::map));
    }

    @Test
    void finishAndTake_databaseIsBusy_waitsForAsManyCallsAsWereOutstanding() throws Exception {
        PublishQueue queue = queueOfBusyDatabase();
        put(queue, TestCalls.call(0));
        put(queue, TestCalls.call(1));
        Batch both = queue.finishAndTake(null);
        Call one = put(queue, TestCalls.call(2)); // three are outstanding
        Taker taker = new Taker(queue, both);
        awaitBlocked(taker.thread);
        Call two = put(queue, TestCalls.call(3));
        Call three = put(queue, TestCalls.call(4));
        assertCalls(taker.get(), one, two, three);
    }

    @Test
    void finishAndTake_databaseIsBusyAndOneCaller_neverWaits() throws Exception {
        PublishQueue queue = queueOfBusyDatabase();
        Batch last = null;
        for (int i = 0; i < 10; i++) {
            Taker taker = new Taker(queue, last).awaitWaiting();
            Call call = put(queue, TestCalls.call(0));
            last = taker.get();
            assertCalls(last, call);
        }
    }

    @Test
    void finishAndTake_callsComeOften_waitsForAsManyCallsAsWereOutstanding() throws Exception {
        CommitPace pace = new CommitPace(FAR, FAR);
        long now = System.nanoTime();
        pace.recordBegin(1_000_000, 1, now); // as many in 50 ms
        pace.recordCommit(1, 1, 1, now);
        assertThat(pace.remainingNanos(now)).isGreaterThan(TimeUnit.MINUTES.toNanos(10));
        PublishQueue queue = new PublishQueue(
                new PendingCalls(2, 1_000_000, 1L << 40), pace, 1L << 40, TestCalls.routing(TestCalls::map));
        Call single = put(queue, TestCalls.call(0));
        Batch first = queue.finishAndTake(null);
        assertCalls(first, single);
        Call one = put(queue, TestCalls.call(1)); // two are outstanding
        Taker taker = new Taker(queue, first);
        awaitBlocked(taker.thread);
        Call two = put(queue, TestCalls.call(2));
        assertCalls(taker.get(), one, two);
    }

    @Test
    void put_commitIsDelayedAndACallerIsBlocked_endsTheDelay() throws Exception {
        PublishQueue queue = queueOfBusyDatabase();
        put(queue, TestCalls.call(0));
        put(queue, TestCalls.call(1));
        Batch both = queue.finishAndTake(null);
        Call one = put(queue, TestCalls.call(2)); // three are outstanding
        Taker taker = new Taker(queue, both);
        awaitBlocked(taker.thread);
        Call two = put(queue, TestCalls.callOfWaitingCaller(3));
        Batch delayed = taker.get();
        assertCalls(delayed, one, two);
        Call next = put(queue, TestCalls.callOfWaitingCaller(4));
        Batch undelayed = queue.finishAndTake(delayed);
        assertCalls(undelayed, next);
        Call last = put(queue, TestCalls.call(5)); // no caller is blocked any more
        Taker later = new Taker(queue, undelayed);
        awaitBlocked(later.thread);
        Call blocked = put(queue, TestCalls.callOfWaitingCaller(6));
        assertCalls(later.get(), last, blocked);
    }

    @Test
    void close_commitIsDelayed_endsTheDelay() throws Exception {
        PublishQueue queue = queueOfBusyDatabase();
        put(queue, TestCalls.call(0));
        Batch batch = queue.finishAndTake(null);
        Call waiting = put(queue, TestCalls.call(1));
        Taker taker = new Taker(queue, batch);
        awaitBlocked(taker.thread);
        queue.close();
        assertCalls(taker.get(), waiting);
    }

    @Test
    void put_commitIsDelayedAndEnoughForTwoCommits_endsTheDelay() throws Exception {
        PublishQueue queue = queueOfBusyDatabase();
        put(queue, TestCalls.call(0));
        Batch batch = queue.finishAndTake(null);
        put(queue, TestCalls.call(1));
        Taker taker = new Taker(queue, batch);
        awaitBlocked(taker.thread);
        int[] partitions = new int[PendingCalls.SHARED_ABOVE_EVENTS];
        put(queue, TestCalls.call(partitions));
        assertThat(taker.get().calls()).hasSize(1);
    }

    @Test
    void finishAndTake_manyCallsCompleted_gathersTheNextOnesIntoOneBatch() throws Exception {
        PublishQueue queue = queue(2);
        put(queue, TestCalls.call(0));
        put(queue, TestCalls.call(1));
        Batch batch = queue.finishAndTake(null);
        assertThat(batch.calls()).hasSize(2);
        Call one = put(queue, TestCalls.call(0));
        Call two = put(queue, TestCalls.call(1));
        assertCalls(queue.finishAndTake(batch), one, two);
    }

    @Test
    void put_bufferFull_blocksUntilABatchIsFinished() throws Exception {
        PublishQueue queue = queue(1, 2 * EVENT_BYTES);
        put(queue, TestCalls.call(0));
        put(queue, TestCalls.call(0));
        Call waiting = TestCalls.call(0);
        Thread putter = start(() -> queue.put(waiting.call));
        awaitBlocked(putter);
        Batch batch = queue.finishAndTake(null);
        assertThat(batch.calls()).hasSize(2);
        assertThat(queue.bufferedBytes()).as("under way is buffered, too").isEqualTo(2 * EVENT_BYTES);
        assertThat(putter.isAlive()).isTrue();
        Taker taker = new Taker(queue, batch);
        putter.join();
        assertCalls(taker.get(), waiting);
        assertThat(queue.bufferedBytes()).isEqualTo(EVENT_BYTES);
    }

    @Test
    void put_bufferFullUntilTheDeadline_failsAsNotStoredNamingTheSetting() {
        PublishQueue queue = queue(1, EVENT_BYTES);
        put(queue, TestCalls.call(0));
        Call late = put(queue, TestCalls.callUntil(System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(20), 0));
        assertThat(late.failure())
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("buffer of 100 bytes")
                .hasMessageContaining("settings.bufferBytes");
        assertThat(queue.bufferedBytes()).isEqualTo(EVENT_BYTES);
    }

    @Test
    void put_interruptedWhileTheBufferIsFull_failsAsNotStoredAndStaysInterrupted() throws Exception {
        PublishQueue queue = queue(1, EVENT_BYTES);
        put(queue, TestCalls.call(0));
        Call waiting = TestCalls.call(0);
        CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
        Thread putter = start(() -> {
            queue.put(waiting.call);
            interrupted.complete(Thread.currentThread().isInterrupted());
        });
        awaitBlocked(putter);
        putter.interrupt();
        assertThat(interrupted.get(120, TimeUnit.SECONDS)).isTrue();
        assertThat(waiting.failure())
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("interrupted");
    }

    @Test
    void put_callLargerThanTheBuffer_isAcceptedByAnEmptyOne() throws InterruptedException {
        PublishQueue queue = queue(1, EVENT_BYTES);
        Call large = put(queue, TestCalls.call(0, 0, 0));
        assertCalls(queue.finishAndTake(null), large);
    }

    @Test
    void offer_noRoom_returnsFalseAndLeavesTheCallOpen() {
        PublishQueue queue = queue(1, EVENT_BYTES);
        Call second = TestCalls.callWithoutKey(1);
        assertThat(queue.offer(TestCalls.callWithoutKey(1).call)).isTrue();
        assertThat(queue.offer(second.call)).isFalse();
        assertThat(second.outcome).isNotDone();
        assertThat(queue.bufferedBytes()).isEqualTo(EVENT_BYTES);
    }

    @Test
    void expire_neverSent_failsAsNotStoredAndFreesItsSpace() throws InterruptedException {
        PublishQueue queue = queue(2);
        long deadline = System.nanoTime() + FAR;
        List<Call> calls = List.of(
                put(queue, TestCalls.callUntil(deadline, 0)),
                put(queue, TestCalls.callUntil(deadline)),
                put(queue, TestCalls.callUntil(deadline, 0, 1)));
        queue.expire(deadline - 1, null);
        assertThat(calls).allSatisfy(c -> assertThat(c.outcome).isNotDone());
        RuntimeException lastFailure = new RuntimeException("connection refused");
        queue.expire(deadline, lastFailure);
        assertThat(calls)
                .allSatisfy(c -> assertThat(c.failure())
                        .isInstanceOf(EventNotStoredException.class)
                        .hasMessageContaining("not sent within")
                        .hasCause(lastFailure));
        assertThat(queue.bufferedBytes()).isZero();
        assertThat(queue.awaitEmpty(0)).isTrue();
    }

    @Test
    void expire_sent_failsAsUnknownAndKeepsItsSpaceUntilFinished() throws Exception {
        PublishQueue queue = queue(1);
        long deadline = System.nanoTime() + FAR;
        Call sent = put(queue, TestCalls.callUntil(deadline, 0));
        Call sentLater = put(queue, TestCalls.callUntil(deadline + 1, 0));
        Batch batch = queue.finishAndTake(null);
        assertThat(batch.beginSending()).isTrue();
        queue.expire(deadline, null);
        assertThat(sent.failure()).isInstanceOf(EventOutcomeUnknownException.class);
        assertThat(sentLater.outcome).isNotDone();
        assertThat(batch.isCompleted()).isFalse();
        assertThat(queue.bufferedBytes()).isEqualTo(2 * EVENT_BYTES);
        queue.expire(deadline + 1, null);
        assertThat(batch.isCompleted()).isTrue();
        new Taker(queue, batch);
        await().until(() -> queue.bufferedBytes() == 0);
    }

    @Test
    void expire_takenButNeverSent_failsAsNotStoredAndIsNotSent() throws Exception {
        PublishQueue queue = queue(1);
        long deadline = System.nanoTime() + FAR;
        Call expired = put(queue, TestCalls.callUntil(deadline, 0));
        Call later = put(queue, TestCalls.callUntil(deadline + 1, 0));
        Batch batch = queue.finishAndTake(null);
        queue.expire(deadline, null);
        assertThat(expired.failure()).isInstanceOf(EventNotStoredException.class);
        assertThat(batch.beginSending()).isTrue();
        assertThat(expired.call.beginSending()).isFalse();
        assertThat(later.call.isSent()).isTrue();
        queue.expire(deadline + 1, null);
        assertThat(later.failure()).isInstanceOf(EventOutcomeUnknownException.class);
    }

    @Test
    void expire_wideCallThatBlockedALane_othersContinue() throws Exception {
        PublishQueue queue = queue(2);
        long deadline = System.nanoTime() + FAR;
        int[] many = new int[PendingCalls.SHARED_ABOVE_EVENTS + 1];
        Call hanging = put(queue, TestCalls.call(many));
        assertCalls(queue.finishAndTake(null), hanging);
        Call wide = put(queue, TestCalls.callUntil(deadline, 0, 1));
        Call later = put(queue, TestCalls.callUntil(deadline + FAR, 1));
        Taker other = new Taker(queue, null).awaitWaiting();
        queue.expire(deadline, null);
        assertThat(wide.failure()).isInstanceOf(EventNotStoredException.class);
        assertCalls(other.get(), later);
    }

    @Test
    void expire_freedSpace_isUsedByABlockedCall() throws Exception {
        PublishQueue queue = queue(1, EVENT_BYTES);
        long deadline = System.nanoTime() + FAR;
        put(queue, TestCalls.callUntil(deadline, 0));
        Call waiting = TestCalls.callUntil(deadline + FAR, 0);
        Thread putter = start(() -> queue.put(waiting.call));
        awaitBlocked(putter);
        queue.expire(deadline, null);
        putter.join();
        assertCalls(queue.finishAndTake(null), waiting);
    }

    @Test
    void takeReroutable_unsentCalls_keepTheirSpaceUntilReroutingIsFinished() throws InterruptedException {
        PublishQueue queue = queue(2);
        put(queue, TestCalls.callWithoutKey(1));
        queue.finishAndTake(null);
        put(queue, TestCalls.call(0));
        Call movable = put(queue, TestCalls.callWithoutKey(1));
        assertThat(queue.takeReroutable()).containsExactly(movable.call);
        assertThat(movable.outcome).isNotDone();
        assertThat(queue.takeReroutable()).isEmpty();
        assertThat(queue.bufferedBytes()).isEqualTo(3 * EVENT_BYTES);
        queue.finishRerouting(List.of(movable.call), List.of());
        assertThat(queue.bufferedBytes()).isEqualTo(2 * EVENT_BYTES);
    }

    @Test
    void close_waitingCalls_areStillTakenThenThreadsEnd() throws Exception {
        PublishQueue queue = queue(2);
        Taker early = new Taker(queue, null).awaitWaiting();
        Call one = put(queue, TestCalls.call(0));
        Batch first = early.get();
        Call two = put(queue, TestCalls.callWithoutKey(1));
        queue.close();
        Batch second = queue.finishAndTake(first);
        assertCalls(first, one);
        assertCalls(second, two);
        assertThat(queue.finishAndTake(second)).isNull();
        assertThat(queue.finishAndTake(null)).isNull();
        assertThat(queue.awaitEmpty(0)).isTrue();
    }

    @Test
    void close_waitingThreads_end() throws Exception {
        PublishQueue queue = queue(2);
        Taker one = new Taker(queue, null).awaitWaiting();
        Taker two = new Taker(queue, null).awaitWaiting();
        queue.close();
        assertThat(one.get()).isNull();
        assertThat(two.get()).isNull();
    }

    @Test
    void close_furtherCalls_failAsNotStored() {
        PublishQueue queue = queue(1);
        queue.close();
        assertThat(put(queue, TestCalls.call(0)).failure())
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("closed");
        assertThat(queue.offer(TestCalls.callWithoutKey(1).call)).isFalse();
    }

    @Test
    void close_blockedCall_failsAsNotStored() throws Exception {
        PublishQueue queue = queue(1, EVENT_BYTES);
        put(queue, TestCalls.call(0));
        Call waiting = TestCalls.call(0);
        Thread putter = start(() -> queue.put(waiting.call));
        awaitBlocked(putter);
        queue.close();
        putter.join();
        assertThat(waiting.failure())
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("closed");
    }

    @Test
    void finishRerouting_queueClosed_stayingCallsAreStillTaken() throws InterruptedException {
        PublishQueue queue = queue(1);
        put(queue, TestCalls.callWithoutKey(1));
        List<PublishCall> movable = queue.takeReroutable();
        queue.close();
        queue.finishRerouting(List.of(), movable);
        assertThat(queue.bufferedBytes()).isEqualTo(EVENT_BYTES);
        assertThat(queue.finishAndTake(null).calls()).containsExactlyElementsOf(movable);
    }

    /** No thread would append them, and their callers would never return. */
    @Test
    void abort_callsThatComeBackOrArriveAfterwards_fail() throws InterruptedException {
        PublishQueue queue = queue(1);
        Call rerouted = put(queue, TestCalls.callWithoutKey(1));
        List<PublishCall> movable = queue.takeReroutable();
        queue.close();
        queue.abort(null);
        queue.finishRerouting(List.of(), movable);
        assertThat(rerouted.failure()).isInstanceOf(EventNotStoredException.class);
        assertThat(queue.bufferedBytes()).isZero();
        Call late = TestCalls.callWithoutKey(1);
        queue.accept(late.call);
        assertThat(late.failure()).isInstanceOf(EventNotStoredException.class);
    }

    @Test
    void abort_sentAndUnsentCalls_failDifferently() throws InterruptedException {
        PublishQueue queue = queue(2);
        Call sent = put(queue, TestCalls.call(0));
        queue.finishAndTake(null).beginSending();
        List<Call> unsent = List.of(
                put(queue, TestCalls.call(0)),
                put(queue, TestCalls.callWithoutKey(1)),
                put(queue, TestCalls.call(0, 1)));
        queue.close();
        assertThat(queue.awaitEmpty(1)).isFalse();
        queue.abort(null);
        assertThat(sent.failure()).isInstanceOf(EventOutcomeUnknownException.class);
        assertThat(unsent).allSatisfy(c -> assertThat(c.failure()).isInstanceOf(EventNotStoredException.class));
    }

    @Test
    void awaitEmpty_batchFinished_returns() throws Exception {
        PublishQueue queue = queue(1);
        put(queue, TestCalls.call(0));
        Batch batch = queue.finishAndTake(null);
        CompletableFuture<Boolean> empty = new CompletableFuture<>();
        Thread waiting = start(() -> empty.complete(queue.awaitEmpty(FAR)));
        awaitBlocked(waiting);
        new Taker(queue, batch);
        assertThat(empty.get(120, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void finishAndTake_interrupted_throws() {
        PublishQueue queue = queue(1);
        CompletableFuture<Void> failed = new CompletableFuture<>();
        Thread taker = start(() -> {
            try {
                queue.finishAndTake(null);
            } catch (InterruptedException e) {
                failed.completeExceptionally(e);
            }
        });
        await().until(() -> taker.getState() == Thread.State.WAITING);
        taker.interrupt();
        assertThatThrownBy(() -> failed.get(120, TimeUnit.SECONDS)).hasCauseInstanceOf(InterruptedException.class);
    }

    /** An append thread that was interrupted while it waited calls again with the same batch. */
    @Test
    void finishAndTake_againAfterInterrupt_releasesTheBatchOnce() throws Exception {
        PublishQueue queue = queue(1);
        put(queue, TestCalls.call(0));
        Batch batch = queue.finishAndTake(null);
        CompletableFuture<Void> failed = new CompletableFuture<>();
        Thread taker = start(() -> {
            try {
                queue.finishAndTake(batch);
            } catch (InterruptedException e) {
                failed.completeExceptionally(e);
            }
        });
        await().until(() -> taker.getState() == Thread.State.WAITING);
        taker.interrupt();
        assertThatThrownBy(() -> failed.get(120, TimeUnit.SECONDS)).hasCauseInstanceOf(InterruptedException.class);
        Call next = put(queue, TestCalls.call(0));

        assertThat(queue.finishAndTake(batch).calls()).containsExactly(next.call);

        assertThat(queue.bufferedBytes()).isEqualTo(EVENT_BYTES);
    }

    @Test
    void expire_rolledBack_failsAsNotStoredWithTheReason() throws Exception {
        PublishQueue queue = queue(1);
        long deadline = System.nanoTime() + FAR;
        Call rolledBack = put(queue, TestCalls.callUntil(deadline, 0));
        Batch batch = queue.finishAndTake(null);
        assertThat(batch.beginSending()).isTrue();
        batch.recordFailure(new SQLException("read-only transaction", "25006"));
        batch.beginAnew(queue.nextBatchNumber());

        queue.expire(deadline, null);

        assertThat(rolledBack.failure())
                .isInstanceOf(EventNotStoredException.class)
                .hasMessageContaining("read-only transaction")
                .hasMessageContaining("settings.publishTimeout")
                .hasCauseInstanceOf(SQLException.class);
        assertThat(batch.beginSending()).isFalse();
    }

    /** A key has the lane 0 before the growth, and another one afterwards, so its calls must not be in two batches. */
    @Test
    void finishAndTake_streamHasGrown_reroutesWhenNoBatchIsInProgress() throws Exception {
        PartitionMap first = PartitionMap.first(1, 1);
        AtomicReference<PartitionMap> current = new AtomicReference<>(first);
        PublishQueue queue = new PublishQueue(
                new PendingCalls(2, 1, 1L << 40),
                new CommitPace(0),
                1L << 40,
                TestCalls.routing(stream -> current.get()));
        PublishCall one = keyed(first);
        PublishCall two = keyed(first);
        queue.put(one);
        queue.put(two);
        Batch batch = queue.finishAndTake(null);
        assertThat(batch.calls()).containsExactly(one);
        current.set(first.grown(4, slot -> true));
        PublishCall three = keyed(current.get());
        queue.put(three);
        assertThat(queue.isRerouting()).isTrue();
        assertThat(queue.takeMore(batch))
                .as("nothing is sent before the batch has ended")
                .isNull();

        batch.withCalls(List.of(one))
                .returnToQueue(PublishCall.Return.REROUTE); // as a part of the batch, which is what is released
        Batch next = queue.finishAndTake(batch);
        assertThat(next.calls()).as("first what came first").containsExactly(one);
        assertThat(List.of(one, two, three)).allSatisfy(call -> {
            assertThat(call.map()).isSameAs(current.get());
            assertThat(call.partition(0)).isEqualTo(current.get().partition(KeyHash.of("k")));
        });
        assertThat(queue.isRerouting()).isFalse();
        Batch after = queue.finishAndTake(next);
        assertThat(after.calls()).containsExactly(two);
        assertThat(queue.finishAndTake(after).calls()).containsExactly(three);
    }

    /** A later call of a key must not be routed to the receiver before the earlier ones, which wait here, are in its queue. */
    @Test
    void finishAndTake_slotsWereClosed_waitingCallsMoveOnBeforeLaterOnesAreRouted() throws Exception {
        PartitionMap map = PartitionMap.first(1, 1);
        List<PublishCall> movedOn = new ArrayList<>();
        PublishQueue queue = new PublishQueue(
                new PendingCalls(2, 1, 1L << 40),
                new CommitPace(0),
                1L << 40,
                step -> assertThat(step.run(
                                call -> {
                                    movedOn.add(call);
                                    return List.of();
                                },
                                7))
                        .isTrue());
        PublishCall one = keyed(map);
        PublishCall two = keyed(map);
        queue.put(one);
        queue.put(two);
        Batch batch = queue.finishAndTake(null);
        queue.requireRerouting();
        PublishCall three = keyed(map);
        assertThat(queue.put(three)).as("routed before this process knew").isTrue();
        assertThat(queue.takeMore(batch)).as("nothing more is sent").isNull();
        assertThat(movedOn).as("the batch in progress may still be stored").isEmpty();

        batch.returnToQueue(PublishCall.Return.REROUTE);
        queue.close();
        assertThat(queue.finishAndTake(batch)).isNull();
        assertThat(movedOn).as("in their order").containsExactly(one, two, three);
        assertThat(queue.bufferedBytes()).isZero();
    }

    @Test
    void put_routedBeforeSlotsWereClosed_isToBeRoutedAgain() throws Exception {
        PartitionMap map = PartitionMap.first(1, 1);
        PublishQueue queue = new PublishQueue(
                new PendingCalls(2, 1, 1L << 40), new CommitPace(0), 1L << 40, step -> step.run(List::of, 7));
        PublishCall waiting = keyed(map);
        queue.put(waiting);
        queue.requireRerouting();
        assertThat(queue.finishAndTake(null).calls()).containsExactly(waiting);
        assertThat(queue.put(keyed(map).routedBy(6))).isFalse();
        assertThat(queue.offer(keyed(map).routedBy(6))).isFalse();
        assertThat(queue.put(keyed(map).routedBy(7))).isTrue();
    }

    /** Both have maps of their own, which no routing makes equal. */
    @Test
    void finishAndTake_streamWasCreatedAnewWithOtherPartitions_callsOfBothAreTaken() throws Exception {
        PublishQueue queue = queue(2);
        Call former = put(queue, new Call(TestCalls.STREAM, 1, new int[] {0}, System.nanoTime() + FAR));
        Call anew = put(queue, new Call(TestCalls.STREAM.withPartitions(4), 1, new int[] {0}, System.nanoTime() + FAR));
        assertCalls(queue.finishAndTake(null), former, anew);
    }

    /** The deadline has passed, and the memory ends while the first call fails. */
    @Test
    void expire_outcomeThrowsError_callsFailTheNextTime() {
        PublishQueue queue = queue(2);
        long deadline = System.nanoTime() - 1;
        AtomicReference<EventSqlException> failure = new AtomicReference<>();
        AtomicInteger attempts = new AtomicInteger();
        PublishCall.Outcome outcome = new PublishCall.Outcome() {
            @Override
            public void stored(EventPosition[] positions, Executor continuations) {}

            @Override
            public void failed(EventSqlException reason) {
                if (attempts.incrementAndGet() == 1) {
                    throw new OutOfMemoryError("thrown by the test");
                }
                failure.set(reason);
            }
        };
        PublishCall first = new PublishCall(
                TestCalls.STREAM,
                List.of(),
                TestCalls.map(TestCalls.STREAM),
                new int[] {0},
                false,
                deadline,
                deadline,
                outcome);
        queue.put(first);
        Call second = put(queue, new Call(TestCalls.STREAM, 1, new int[] {1}, deadline));
        assertThatThrownBy(() -> queue.expire(System.nanoTime(), null)).isInstanceOf(OutOfMemoryError.class);
        assertThat(first.isCompleted()).isFalse();

        queue.expire(System.nanoTime(), null);

        assertThat(failure.get()).isInstanceOf(EventSqlException.class);
        assertThat(second.failure()).isInstanceOf(EventNotStoredException.class);
    }

    private static PublishCall keyed(PartitionMap map) {
        int[] partition = {map.partition(KeyHash.of("k"))};
        return new TestCalls.Call(TestCalls.STREAM, map, 1, partition, System.nanoTime() + TestCalls.FAR).call;
    }
}
