package io.eventsql.internal.append;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.internal.append.PublishCall.Return;
import io.eventsql.internal.append.TestCalls.Call;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Calls that wait for transactions of the application, or for their streams. {@code queue} has two lanes: even and odd keys. */
@Timeout(60)
class HeldCallsTest {
    private final PublishQueue queue = queue(2);
    private final List<Thread> threads = new ArrayList<>();

    @AfterEach
    void endThreads() {
        threads.forEach(Thread::interrupt);
    }

    private static PublishQueue queue(int lanes) {
        return new PublishQueue(
                new PendingCalls(lanes, 400, 1L << 40), new CommitPace(0), 1L << 40, TestCalls.routing(TestCalls::map));
    }

    private Call put(int... keys) {
        return putUntil(System.nanoTime() + TestCalls.FAR, keys);
    }

    private Call putUntil(long deadlineNanos, int... keys) {
        Call call = TestCalls.callOfKeys(deadlineNanos, keys);
        queue.put(call.call);
        return call;
    }

    private static void hold(Batch batch, Call... calls) {
        batch.withCalls(TestCalls.calls(calls)).returnToQueue(Return.HOLD);
    }

    private static void assertCalls(Batch batch, Call... calls) {
        assertThat(batch).isNotNull();
        assertThat(batch.calls()).containsExactlyElementsOf(TestCalls.calls(calls));
    }

    /** Has held calls retried from now on, as the publisher's timer does. */
    private void startTimer() {
        threads.add(Thread.ofPlatform().start(() -> {
            while (!Thread.interrupted()) {
                queue.expire(System.nanoTime(), null);
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
            }
        }));
    }

    @Test
    void finishAndTake_aCallIsHeld_othersAreTakenWithoutThoseOfItsKey() throws Exception {
        Call held = put(0);
        Batch first = queue.finishAndTake(null);
        put(0);
        Call wide = put(2, 1);
        put(0, 3);
        put(3);
        Call later = put(2);
        hold(first, held);
        assertCalls(queue.finishAndTake(first), wide, later);
        assertThat(queue.bufferState(0, "").waitingCalls()).isEqualTo(4);
    }

    @Test
    void finishAndTake_heldCallIsTriedAgainAndStored_thoseBehindItFollowInOrder() throws Exception {
        Call held = put(0);
        Batch first = queue.finishAndTake(null);
        Call wide = put(0, 1);
        Call behind = put(1);
        hold(first, held);
        Call other = put(3);
        Batch others = queue.finishAndTake(first);
        assertCalls(others, other);
        startTimer();
        Batch tried = queue.finishAndTake(others);
        assertCalls(tried, held);
        Call last = put(0);
        assertCalls(queue.finishAndTake(tried), wide, behind, last);
    }

    @Test
    void finishAndTake_triedCallIsHeldAgain_itIsStillFirst() throws Exception {
        Call held = put(0);
        Batch first = queue.finishAndTake(null);
        hold(first, held);
        Call behind = put(0);
        startTimer();
        Batch tried = queue.finishAndTake(first);
        assertCalls(tried, held);
        hold(tried, held);
        tried = queue.finishAndTake(tried);
        assertCalls(tried, held);
        assertCalls(queue.finishAndTake(tried), behind);
    }

    /** With many calls, the lanes of one that needs all of them would hardly ever be free at the same time. */
    @Test
    void takeBatch_heldCallNeedsAllLanes_nothingIsTakenBeforeTheyAreFree() {
        PendingCalls pending = new PendingCalls(2, 400, 1L << 40);
        Call held = TestCalls.callOfKeys(System.nanoTime() + TestCalls.FAR, 0, 1);
        pending.hold(List.of(held.call), List.of());
        for (int i = 0; i <= 2 * PendingCalls.SHARED_ABOVE_EVENTS; i++) {
            pending.add(TestCalls.callOfKeys(System.nanoTime() + TestCalls.FAR, 2 + i % 2).call);
        }
        Batch ofOneLane = pending.takeBatch();
        assertThat(ofOneLane.lanes().cardinality()).isEqualTo(1);
        assertThat(pending.tick()).isTrue();
        assertThat(pending.takeBatch()).isNull();
        pending.done(ofOneLane);
        assertCalls(pending.takeBatch(), held);
    }

    /** Each of a hundred held calls is retried in a batch of its own, again and again. */
    @Test
    void takeBatch_manyCallsAreHeld_othersAreTakenInTurnAlsoThoseOfAllLanes() {
        PendingCalls pending = new PendingCalls(2, 400, 1L << 40);
        PublishCall heldOfAllLanes = TestCalls.callOfKeys(System.nanoTime() + TestCalls.FAR, 98, 99).call;
        for (int key = 100; key < 200; key++) {
            PublishCall held =
                    key == 120 ? heldOfAllLanes : TestCalls.callOfKeys(System.nanoTime() + TestCalls.FAR, key).call;
            held.setSequence(key);
            pending.hold(List.of(held), List.of());
        }
        List<PublishCall> others = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            others.add(TestCalls.callOfKeys(System.nanoTime() + TestCalls.FAR, i).call);
            others.add(TestCalls.callOfKeys(System.nanoTime() + TestCalls.FAR, i, i + 1).call);
        }
        others.forEach(pending::add);
        Set<PublishCall> taken = new HashSet<>();
        Deque<Batch> inProgress = new ArrayDeque<>();
        for (int turn = 0; turn < 100; turn++) {
            for (int tick = 0; tick < 20; tick++) {
                pending.tick();
            }
            Batch batch = pending.takeBatch();
            if (batch != null) {
                inProgress.add(batch);
            }
            if (batch == null || inProgress.size() == 2) {
                Batch ended = inProgress.remove();
                pending.done(ended);
                List<PublishCall> again = new ArrayList<>(ended.calls());
                again.removeAll(others);
                taken.addAll(ended.calls());
                pending.hold(again, List.of());
            }
        }
        assertThat(taken).contains(heldOfAllLanes).containsAll(others).hasSizeGreaterThan(others.size() + 20);
    }

    /** Only an unavailable shard may have its stream. */
    @Test
    void takeBatch_callWithoutKeyIsHeld_othersAreTakenAndItIsRetriedAlone() {
        PendingCalls pending = new PendingCalls(2, 400, 1L << 40);
        Call held = TestCalls.callWithoutKey(1);
        pending.add(held.call);
        takeAndHold(pending, held);
        Call other = TestCalls.callWithoutKey(1);
        pending.add(other.call);
        Batch others = pending.takeBatch();
        assertCalls(others, other);
        pending.done(others);
        assertThat(pending.tick()).isTrue();
        Call later = TestCalls.callWithoutKey(1);
        pending.add(later.call);
        Batch retried = pending.takeBatch();
        assertCalls(retried, held);
        assertThat(retried.lanes().stream().toArray()).containsExactly(retried.partition(held.call, 0) % 2);
        assertCalls(pending.takeBatch(), later);
    }

    /** It goes to another shard. */
    @Test
    void removeWithoutKeys_callIsHeld_itIsNotRetried() {
        PendingCalls pending = new PendingCalls(2, 400, 1L << 40);
        Call held = TestCalls.callWithoutKey(1);
        pending.add(held.call);
        takeAndHold(pending, held);
        assertThat(pending.removeWithoutKeys()).containsExactly(held.call);
        assertThat(pending.tick()).isFalse();
        assertThat(pending.takeBatch()).isNull();
    }

    @Test
    void removeExpired_firstOfAGroup_thoseBehindItDoNotOvertakeCallsOfOtherKeys() {
        PendingCalls pending = new PendingCalls(2, 400, 1L << 40);
        long deadline = System.nanoTime() + TestCalls.FAR;
        pending.add(TestCalls.callOfKeys(deadline, 1).call);
        Batch busy = pending.takeBatch();
        Call held = TestCalls.callOfKeys(deadline, 0);
        pending.hold(List.of(held.call), List.of());
        Call waiting = TestCalls.callOfKeys(2 * deadline, 1);
        Call ofBoth = TestCalls.callOfKeys(2 * deadline, 0, 1);
        pending.add(waiting.call);
        pending.add(ofBoth.call);
        assertThat(pending.calls()).isEqualTo(3);
        List<PublishCall> expired = new ArrayList<>();
        pending.removeExpired(deadline, expired::add);
        assertThat(expired).containsExactly(held.call);
        pending.tick();
        pending.done(busy);
        assertCalls(pending.takeBatch(), waiting, ofBoth);
    }

    @Test
    void hold_anotherCallIsHeldAlready_callsKeepTheirOrderInOtherLanes() {
        PendingCalls pending = new PendingCalls(2, 400, 1L << 40);
        add(pending, 5);
        Batch busy = pending.takeBatch();
        pending.releaseUnusedLanes(busy);
        Call first = add(pending, 1);
        Call second = add(pending, 1, 3);
        Call held = add(pending, 0);
        takeAndHold(pending, held);
        add(pending, 0, 3);
        Call alsoHeld = add(pending, 2);
        takeAndHold(pending, alsoHeld);
        pending.tick();
        pending.done(busy);
        assertCalls(pending.takeBatch(), held);
        assertCalls(pending.takeBatch(), first, second);
    }

    private static Call add(PendingCalls pending, int... keys) {
        Call call = TestCalls.callOfKeys(System.nanoTime() + TestCalls.FAR, keys);
        pending.add(call.call);
        return call;
    }

    private static void takeAndHold(PendingCalls pending, Call call) {
        Batch batch = pending.takeBatch();
        assertCalls(batch, call);
        pending.done(batch);
        pending.hold(batch.calls(), List.of());
    }

    @Test
    void finishAndTake_heldCallIsStored_thoseOfItsBatchThatFollowShareOne() throws Exception {
        Call held = put(0);
        Call second = put(0);
        Call third = put(0);
        Batch whole = queue.finishAndTake(null);
        BatchParts parts = new BatchParts(queue, whole);
        parts.split(whole);
        parts.hold(parts.next());
        assertThat(parts.next()).isNull();
        parts.finish();
        startTimer();
        Batch tried = queue.finishAndTake(whole);
        assertCalls(tried, held);
        assertCalls(queue.finishAndTake(tried), second, third);
    }

    /** One call waits for two transactions, of which one has ended. */
    @Test
    void finishAndTake_callWaitsForTwo_eachOfThemIsRetriedByItself() throws Exception {
        Call one = put(0);
        Call other = put(1);
        Batch first = queue.finishAndTake(null);
        assertCalls(first, one, other);
        Call both = put(0, 1);
        Call behind = put(1);
        hold(first, one, other);
        startTimer();
        Batch tried = queue.finishAndTake(first);
        assertCalls(tried, one);
        Batch triedNext = queue.finishAndTake(null);
        assertCalls(triedNext, other);
        hold(tried, one);
        Batch again = queue.finishAndTake(tried);
        assertCalls(again, one);
        assertThat(queue.bufferState(0, "").waitingCalls()).isEqualTo(2);
        assertThat(List.of(both, behind)).noneMatch(call -> call.call.isCompleted());
    }

    /** A part of a batch is held, another one times out, and lets further calls of its lanes come before. */
    @Test
    void defer_afterAnotherPartWasHeld_callsOfItsKeyDoNotComeBefore() throws Exception {
        Call held = put(0);
        Call slow = put(2);
        Batch whole = queue.finishAndTake(null);
        BatchParts parts = new BatchParts(queue, whole);
        parts.split(whole);
        parts.hold(parts.next());
        Call ofHeldKey = put(0);
        Batch part = parts.next();
        assertCalls(part, slow);
        assertThat(parts.defer(part)).as("others come before").isFalse();
        assertCalls(parts.next(), slow);
        parts.finish();
        slow.call.failAsNotStored("the end of it", null);
        startTimer();
        Batch tried = queue.finishAndTake(whole);
        assertCalls(tried, held);
        assertCalls(queue.finishAndTake(tried), ofHeldKey);
    }

    @Test
    void expire_heldCall_failsAsNotStoredAndThoseBehindItAreTried() throws Exception {
        long deadline = System.nanoTime();
        Call held = putUntil(deadline + TestCalls.FAR, 0);
        Batch first = queue.finishAndTake(null);
        hold(first, held);
        Call other = put(1);
        Batch others = queue.finishAndTake(first);
        assertCalls(others, other);
        Call behind = putUntil(deadline + 2 * TestCalls.FAR, 0);
        queue.expire(deadline + TestCalls.FAR, null);
        assertThat(held.failure()).hasMessageContaining("Not stored");
        assertCalls(queue.finishAndTake(others), behind);
    }

    @Test
    void close_heldCall_isStillTried() throws Exception {
        Call held = put(0);
        Batch first = queue.finishAndTake(null);
        hold(first, held);
        queue.close();
        assertThat(queue.awaitEmpty(0)).isFalse();
        startTimer();
        Batch tried = queue.finishAndTake(first);
        assertCalls(tried, held);
        assertThat(queue.finishAndTake(tried)).isNull();
        assertThat(queue.bufferedBytes()).isZero();
    }

    /**
     * Goal: the calls of a key are stored in their order, whatever transactions begin and end, and none is left lying. Method:
     * random calls of one to three keys, of which some are reserved for a time; the threads hold what they may not store, as the
     * appender does.
     */
    @ParameterizedTest
    @CsvSource({"1", "2", "4"})
    void finishAndTake_keysAreReservedNowAndThen_callsOfAKeyKeepTheirOrder(int lanes) throws Exception {
        long seed = Long.getLong("eventsql.test.seed", System.nanoTime());
        Random random = new Random(seed);
        PublishQueue all = queue(lanes);
        Set<String> reserved = ConcurrentHashMap.newKeySet();
        Map<String, Deque<PublishCall>> expected = new ConcurrentHashMap<>();
        List<Throwable> failures = new ArrayList<>();
        for (int thread = 0; thread < lanes; thread++) {
            threads.add(Thread.ofPlatform().start(() -> {
                try {
                    for (Batch batch = all.finishAndTake(null); batch != null; batch = all.finishAndTake(batch)) {
                        store(batch, reserved, expected);
                        LockSupport.parkNanos(batch.number() % 4 * 50_000); // some appends take longer
                    }
                } catch (Throwable e) {
                    synchronized (failures) {
                        failures.add(e);
                    }
                }
            }));
        }
        for (int i = 0; i < 4_000; i++) {
            int[] keys = random.ints(random.nextInt(5) == 0 ? 3 : 1, 0, 16)
                    .distinct()
                    .toArray();
            long timeToLive = random.nextInt(20) == 0 ? random.nextInt(20_000_000) : TestCalls.FAR;
            Call call = TestCalls.callOfKeys(System.nanoTime() + timeToLive, keys);
            for (int key : keys) {
                expected.computeIfAbsent(keyOf(key), k -> new ArrayDeque<>());
                synchronized (expected) {
                    expected.get(keyOf(key)).add(call.call);
                }
            }
            all.put(call.call);
            if (random.nextInt(20) == 0) {
                reserved.add(keyOf(random.nextInt(16)));
            } else if (random.nextInt(10) == 0) {
                reserved.remove(keyOf(random.nextInt(16)));
            }
            if (random.nextInt(50) == 0) {
                all.expire(System.nanoTime(), null);
                Thread.yield();
            }
        }
        reserved.clear();
        all.close();
        while (!all.awaitEmpty(TimeUnit.MILLISECONDS.toNanos(1)) && failures.isEmpty()) {
            all.expire(System.nanoTime(), null);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(failures).as("seed %d", seed).isEmpty();
        assertThat(expected.values())
                .as("not stored, seed %d", seed)
                .allMatch(left -> left.stream().allMatch(call -> call.deadlineNanos() - System.nanoTime() <= 0));
        assertThat(all.bufferedBytes()).isZero();
    }

    /** As calls name it, with its stream. */
    private static String keyOf(int number) {
        return TestCalls.STREAM.name() + ' ' + number;
    }

    private static void store(Batch batch, Set<String> reserved, Map<String, Deque<PublishCall>> expected) {
        Set<String> reservedNow = Set.copyOf(reserved);
        Set<String> held = new HashSet<>();
        Map<String, PublishCall> overtaken = new HashMap<>();
        for (PublishCall call : batch.calls()) {
            Set<String> keys = new HashSet<>();
            call.addKeysTo(keys);
            boolean follows = call.hasKeyOf(held);
            if (follows || call.hasKeyOf(reservedNow)) {
                batch.withCalls(List.of(call)).returnToQueue(follows ? Return.FOLLOW : Return.HOLD);
                held.addAll(keys);
                continue;
            }
            long now = System.nanoTime();
            synchronized (expected) {
                for (String key : keys) {
                    Deque<PublishCall> ofKey = expected.get(key);
                    while (!ofKey.isEmpty()
                            && ofKey.peek() != call
                            && ofKey.peek().deadlineNanos() - now <= 0) {
                        ofKey.remove(); // it has expired
                    }
                    boolean isNext = ofKey.peek() == call;
                    ofKey.remove(call);
                    if (!isNext && call.deadlineNanos() - now > 0) {
                        overtaken.put(key, call);
                    }
                }
            }
            call.failAsNotStored("the end of it", null);
        }
        assertThat(overtaken).as("calls that have overtaken others").isEmpty();
    }
}
