package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Effects;
import io.eventsql.fixture.check.HandledRecords;
import io.eventsql.fixture.process.ConsumerGroup;
import io.eventsql.fixture.process.ConsumerProcess;
import io.eventsql.fixture.process.MemberProcess;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Goal: while processes join and leave a consumer, are closed and killed, have limits and stuck handlers, partitions are
 * shared fairly, no member starves, the partitions of one that leaves are taken over, and no event is lost or handled out of
 * order.
 *
 * <p>Method: member processes ({@link ConsumerProcess}) run while a publisher publishes steadily; their records are compared
 * with the stored events ({@link HandledRecords}, {@link Effects}). Leases are long where expiry must not be the reason for a
 * takeover.
 *
 * <p>Lines that begin with {@code MEASURED} show the time from closing or killing a member until every partition it owned is
 * handled by another member.
 */
@Timeout(300)
class MembershipIT {
    private static final long LONG_LEASE_MS = 60_000;
    private static final int PARTITIONS = 6;
    /** From one event of a partition to the next. Partitions move whatever the rate, and the processes need the processors. */
    private static final long TICK_MS = 80;

    private static final AtomicInteger STREAMS = new AtomicInteger();

    private static EventsDb eventsDb;

    @TempDir
    private Path folder;

    @BeforeAll
    static void startServer() {
        eventsDb = SharedServerDatabase.create();
    }

    @AfterAll
    static void stopServer() {
        eventsDb.close();
    }

    private ConsumerGroup group(HandlerMode mode, int partitions) throws Exception {
        String stream = "members" + STREAMS.incrementAndGet();
        return new ConsumerGroup(
                eventsDb, folder, TestStreams.of(stream).withPartitions(partitions), Map.of("c", mode), TICK_MS);
    }

    /** Returns the longest time from {@code since} until another process handles an event of one of these partitions. */
    private static double takeoverMs(ConsumerGroup group, String from, Set<Integer> partitions, long since) {
        List<Long> firsts = new ArrayList<>();
        for (int partition : partitions) {
            group.awaitThat(
                    "partition " + partition + " is handled by another member",
                    () -> firstHandled(group, from, partition, since) < Long.MAX_VALUE);
            firsts.add(firstHandled(group, from, partition, since) - since);
        }
        return firsts.stream().mapToLong(Long::longValue).max().orElseThrow() / 1e6;
    }

    private static long firstHandled(ConsumerGroup group, String from, int partition, long since) {
        return group.records().handled().stream()
                .filter(line -> line.partition() == partition && line.nanos() > since)
                .filter(line -> !line.process().equals(from))
                .mapToLong(HandledRecords.Line::nanos)
                .min()
                .orElse(Long.MAX_VALUE);
    }

    @Test
    void join_oneByOne_partitionsAreSharedFairlyAndNoMemberStarves() throws Exception {
        try (ConsumerGroup group = group(HandlerMode.SINGLE, 10).with("leaseMs", LONG_LEASE_MS)) {
            List<MemberProcess> members = new ArrayList<>();
            for (int i = 1; i <= 4; i++) {
                members.add(group.start("m" + i));
                group.awaitFair(i);
            }
            for (MemberProcess member : members) {
                group.awaitHandlesMore(member);
            }
            for (int left = 3; left >= 1; left--) {
                members.removeFirst().close();
                group.awaitFair(left);
            }
            group.finish();
            group.records().verifyNothingRepeated();
            assertThat(group.printed("FAILED")).isEmpty();
        }
    }

    @ParameterizedTest
    @MethodSource("io.eventsql.fixture.HandlerMode#tested")
    void close_whileEventsArrive_othersTakeOverBeforeTheLeaseExpires(HandlerMode mode) throws Exception {
        try (ConsumerGroup group = group(mode, PARTITIONS).with("leaseMs", LONG_LEASE_MS)) {
            MemberProcess leaver = group.start("leaver");
            MemberProcess other = group.start("other");
            group.start("third");
            group.awaitFair(3);
            if (!mode.isTransactional()) {
                group.awaitHandlesMore(leaver);
                group.awaitHandlesMore(other);
                Set<Integer> held = group.partitionsOf(leaver);
                long since = System.nanoTime();
                leaver.beginClose();
                double takeoverMs = takeoverMs(group, "leaver", held, since);
                System.out.printf("MEASURED close until handled by another member, %s: %.0f ms%n", mode, takeoverMs);
                assertThat(takeoverMs).isLessThan(LONG_LEASE_MS / 2.0);
            } else {
                leaver.beginClose();
            }
            leaver.awaitClosed();
            group.awaitFair(2);
            group.finish();
            if (!mode.isTransactional()) {
                group.records().verifyNothingRepeated();
            }
        }
    }

    @Test
    void close_oneHandlerSlow_otherPartitionsMoveAtOnce() throws Exception {
        try (ConsumerGroup group = group(HandlerMode.SINGLE, PARTITIONS).with("leaseMs", 4_000)) {
            MemberProcess leaver = group.start("leaver", "closeMs=60000");
            group.start("other");
            group.awaitFair(2);
            Set<Integer> held = group.partitionsOf(leaver);
            int slow = Integer.parseInt(leaver.hold().split(" ", -1)[0]);
            held.remove(slow);
            long since = System.nanoTime();
            leaver.beginClose();
            double takeoverMs = takeoverMs(group, "leaver", held, since);
            System.out.printf(
                    "MEASURED close with a slow handler until other partitions are handled: %.0f ms%n", takeoverMs);
            assertThat(leaver.lines("CLOSED")).isEmpty();
            leaver.go();
            leaver.awaitClosed();
            group.finish();
            group.records().verifyNothingRepeated();
        }
    }

    @Test
    void kill_whileEventsArrive_othersTakeOverWhenTheLeaseExpires() throws Exception {
        long leaseMs = 3_000;
        try (ConsumerGroup group =
                group(HandlerMode.SINGLE, PARTITIONS).with("leaseMs", leaseMs).with("heartbeatMs", 1_000)) {
            MemberProcess victim = group.start("victim");
            group.start("other");
            group.start("third");
            group.awaitFair(3);
            group.awaitHandlesMore(victim);
            Set<Integer> held = group.partitionsOf(victim);
            long since = System.nanoTime();
            victim.kill();
            double takeoverMs = takeoverMs(group, "victim", held, since);
            System.out.printf(
                    "MEASURED kill until handled by another member: %.0f ms, lease %d ms%n", takeoverMs, leaseMs);
            assertThat(takeoverMs).isLessThan(leaseMs + 10_000.0);
            group.awaitFair(2);
            group.finish();
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"SINGLE", "TRANSACTIONAL_BATCH"})
    void restart_allMembersWereClosed_nothingIsLost(HandlerMode mode) throws Exception {
        try (ConsumerGroup group = group(mode, PARTITIONS).with("leaseMs", LONG_LEASE_MS)) {
            List<MemberProcess> first = List.of(group.begin("a1"), group.begin("b1"), group.begin("c1"));
            group.awaitFair(3);
            for (MemberProcess member : first) {
                member.beginClose();
            }
            for (MemberProcess member : first) {
                member.awaitClosed();
            }
            assertThat(group.shares("c")).isEmpty();
            long before = group.load().published();
            group.awaitThat("more events are published", () -> group.load().published() > before + 50);
            group.begin("a2");
            group.begin("b2");
            group.awaitFair(2);
            group.finish();
            if (!mode.isTransactional()) {
                group.records().verifyNothingRepeated();
            }
        }
    }

    @Test
    void maxPartitions_limitsSomeMembers_othersTakeTheRest() throws Exception {
        try (ConsumerGroup group = group(HandlerMode.SINGLE, 8).with("leaseMs", LONG_LEASE_MS)) {
            MemberProcess one = group.start("one", "maxPartitions=1");
            group.awaitHandlesMore(one);
            assertThat(group.partitionsOf(one)).hasSize(1);
            group.start("two", "maxPartitions=2");
            MemberProcess rest = group.start("rest");
            group.awaitThat("the rest is taken", () -> group.partitionsOf(rest).size() == 5);
            group.awaitHandlesMore(rest);
            group.finish();
            group.records().verifyNothingRepeated();
        }
    }

    @Test
    void handlerTimeout_oneHandlerHangs_itsPartitionMovesAndTheMemberContinues() throws Exception {
        try (ConsumerGroup group = group(HandlerMode.SINGLE, PARTITIONS)
                .with("leaseMs", 2_000)
                .with("heartbeatMs", 300)
                .with("handlerTimeoutMs", 1_000)) {
            MemberProcess slow = group.start("slow");
            group.start("other");
            group.awaitFair(2);
            int stuck = Integer.parseInt(slow.hold().split(" ", -1)[0]);
            int from = slow.position();
            assertThat(slow.awaitLine("TIMEOUT")).isEqualTo("c " + stuck);
            slow.awaitLine("REVOKED c " + stuck + " LOST", from);
            group.awaitThat("the partition moves", () -> {
                List<HandledRecords.Line> lines = group.records().handled();
                return lines.reversed().stream()
                        .limit(50)
                        .anyMatch(line ->
                                line.partition() == stuck && line.process().equals("other"));
            });
            group.awaitHandlesMore(slow); // its other partitions
            assertThat(slow.lines("TIMEOUT")).hasSize(1);
            slow.go();
            group.awaitFair(2);
            group.finish();
        }
    }

    @Test
    void handlerTimeout_concurrencyOne_waitingPartitionsMoveToo() throws Exception {
        try (ConsumerGroup group = group(HandlerMode.SINGLE, PARTITIONS)
                .with("leaseMs", 2_000)
                .with("heartbeatMs", 300)
                .with("handlerTimeoutMs", 1_000)) {
            MemberProcess slow = group.start("slow", "concurrency=1");
            MemberProcess other = group.start("other");
            group.awaitFair(2);
            slow.hold();
            slow.awaitLine("TIMEOUT");
            group.awaitThat(
                    "all partitions move", () -> group.partitionsOf(other).size() == PARTITIONS);
            slow.go();
            group.awaitFair(2);
            group.finish();
        }
    }

    @Test
    void join_killedImmediately_itsShareIsTakenAfterItExpires() throws Exception {
        long leaseMs = 4_000;
        try (ConsumerGroup group =
                group(HandlerMode.SINGLE, PARTITIONS).with("leaseMs", leaseMs).with("heartbeatMs", 2_000)) {
            group.start("a");
            group.start("b");
            group.awaitFair(2);
            for (int i = 0; i < 3; i++) {
                MemberProcess joining = group.begin("joining" + i);
                joining.awaitLine("READY");
                TimeUnit.MILLISECONDS.sleep(3L * i);
                joining.kill();
                group.awaitFair(2);
            }
            group.finish();
        }
    }
}
