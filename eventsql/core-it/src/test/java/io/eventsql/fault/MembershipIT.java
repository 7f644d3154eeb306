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
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

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
    private static final String CONSUMER = "c";
    private static final long LONG_LEASE_MS = 60_000;
    private static final int PARTITIONS = 4;
    /** From one event of a partition to the next. Partitions move whatever the rate, and the processes need the processors. */
    private static final long TICK_MS = 160;

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

    private ConsumerGroup group(int partitions) throws Exception {
        return group(Map.of(CONSUMER, HandlerMode.SINGLE), partitions);
    }

    private ConsumerGroup group(Map<String, HandlerMode> consumers, int partitions) throws Exception {
        String stream = TestStreams.newName();
        return new ConsumerGroup(
                eventsDb, folder, TestStreams.of(stream).withPartitions(partitions), consumers, TICK_MS);
    }

    /** Returns the longest time from {@code since} until another process handles an event of one of these partitions. */
    private static double takeoverMs(
            ConsumerGroup group, String consumer, String from, Set<Integer> partitions, long since) {
        List<Long> firsts = new ArrayList<>();
        for (int partition : partitions) {
            group.awaitThat(
                    "partition " + partition + " of " + consumer + " is handled by another member",
                    () -> firstHandled(group, consumer, from, partition, since) < Long.MAX_VALUE);
            firsts.add(firstHandled(group, consumer, from, partition, since) - since);
        }
        return firsts.stream().mapToLong(Long::longValue).max().orElseThrow() / 1e6;
    }

    private static long firstHandled(ConsumerGroup group, String consumer, String from, int partition, long since) {
        return group.records(consumer).handled().stream()
                .filter(line -> line.partition() == partition && line.nanos() > since)
                .filter(line -> !line.process().equals(from))
                .mapToLong(HandledRecords.Line::nanos)
                .min()
                .orElse(Long.MAX_VALUE);
    }

    @Test
    void join_oneByOne_partitionsAreSharedFairlyAndNoMemberStarves() throws Exception {
        try (ConsumerGroup group = group(5).with("leaseMs", LONG_LEASE_MS)) {
            List<MemberProcess> members = new ArrayList<>();
            for (int i = 1; i <= 3; i++) {
                members.add(group.start("m" + i));
                group.awaitFair(i);
            }
            for (MemberProcess member : members) {
                group.awaitHandlesMore(member);
            }
            for (int left = 2; left >= 1; left--) {
                members.removeFirst().close();
                group.awaitFair(left);
            }
            group.finish();
            group.records().verifyNothingRepeated();
            assertThat(group.printed("FAILED")).isEmpty();
        }
    }

    /** Each process has a member of a consumer with each kind of handler. */
    @Test
    void close_whileEventsArrive_othersTakeOverBeforeTheLeaseExpires() throws Exception {
        Map<String, HandlerMode> consumers = byName(HandlerMode.tested());
        Set<String> plain = byName(HandlerMode.testedPlain()).keySet();
        try (ConsumerGroup group = group(consumers, PARTITIONS).with("leaseMs", LONG_LEASE_MS)) {
            MemberProcess leaver = group.start("leaver");
            MemberProcess other = group.start("other");
            group.start("third");
            group.awaitFair(3);
            Map<String, Set<Integer>> held = new HashMap<>();
            for (String consumer : plain) {
                group.awaitHandlesMore(leaver, consumer);
                group.awaitHandlesMore(other, consumer);
                held.put(consumer, group.partitionsOf(leaver, consumer));
            }
            long since = System.nanoTime();
            leaver.beginClose();
            for (String consumer : plain) {
                double takeoverMs = takeoverMs(group, consumer, "leaver", held.get(consumer), since);
                System.out.printf(
                        "MEASURED close until handled by another member, %s: %.0f ms%n", consumer, takeoverMs);
                assertThat(takeoverMs).isLessThan(LONG_LEASE_MS / 2.0);
            }
            leaver.awaitClosed();
            group.awaitFair(2);
            group.finish();
            for (String consumer : plain) {
                group.records(consumer).verifyNothingRepeated();
            }
        }
    }

    private static Map<String, HandlerMode> byName(Stream<HandlerMode> modes) {
        return modes.collect(Collectors.toMap(mode -> mode.name().toLowerCase(Locale.ROOT), mode -> mode));
    }

    @Test
    void close_oneHandlerSlow_otherPartitionsMoveAtOnce() throws Exception {
        try (ConsumerGroup group = group(PARTITIONS).with("leaseMs", 4_000)) {
            MemberProcess leaver = group.start("leaver", "closeMs=60000");
            group.start("other");
            group.awaitFair(2);
            group.awaitThat(
                    "the leaver has its share", () -> group.partitionsOf(leaver).size() == PARTITIONS / 2);
            Set<Integer> held = group.partitionsOf(leaver);
            int slow = Integer.parseInt(leaver.hold().split(" ", -1)[0]);
            held.remove(slow);
            long since = System.nanoTime();
            leaver.beginClose();
            double takeoverMs = takeoverMs(group, CONSUMER, "leaver", held, since);
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
        try (ConsumerGroup group = group(PARTITIONS).with("leaseMs", leaseMs).with("heartbeatMs", 1_000)) {
            MemberProcess victim = group.start("victim");
            group.start("other");
            group.start("third");
            group.awaitFair(3);
            group.awaitHandlesMore(victim);
            Set<Integer> held = group.partitionsOf(victim);
            long since = System.nanoTime();
            victim.kill();
            double takeoverMs = takeoverMs(group, CONSUMER, "victim", held, since);
            System.out.printf(
                    "MEASURED kill until handled by another member: %.0f ms, lease %d ms%n", takeoverMs, leaseMs);
            assertThat(takeoverMs).isLessThan(leaseMs + 10_000.0);
            group.awaitFair(2);
            group.finish();
        }
    }

    @Test
    void restart_allMembersWereClosed_nothingIsLost() throws Exception {
        Map<String, HandlerMode> consumers =
                Map.of("single", HandlerMode.SINGLE, "transactional_batch", HandlerMode.TRANSACTIONAL_BATCH);
        try (ConsumerGroup group = group(consumers, PARTITIONS).with("leaseMs", LONG_LEASE_MS)) {
            List<MemberProcess> first = List.of(group.begin("a1"), group.begin("b1"));
            group.awaitFair(2);
            for (MemberProcess member : first) {
                member.beginClose();
            }
            for (MemberProcess member : first) {
                member.awaitClosed();
            }
            for (String consumer : consumers.keySet()) {
                assertThat(group.shares(consumer)).isEmpty();
            }
            long before = group.load().published();
            group.awaitThat("more events are published", () -> group.load().published() > before + 50);
            group.begin("a2");
            group.begin("b2");
            group.awaitFair(2);
            group.finish();
            group.records("single").verifyNothingRepeated();
        }
    }

    @Test
    void maxPartitions_limitsSomeMembers_othersTakeTheRest() throws Exception {
        try (ConsumerGroup group = group(7).with("leaseMs", LONG_LEASE_MS)) {
            MemberProcess one = group.start("one", "maxPartitions=1");
            group.awaitHandlesMore(one);
            assertThat(group.partitionsOf(one)).hasSize(1);
            group.start("two", "maxPartitions=2");
            MemberProcess rest = group.start("rest");
            group.awaitThat("the rest is taken", () -> group.partitionsOf(rest).size() == 4);
            group.awaitHandlesMore(rest);
            group.finish();
            group.records().verifyNothingRepeated();
        }
    }

    @Test
    void handlerTimeout_oneHandlerHangs_itsPartitionMovesAndTheMemberContinues() throws Exception {
        try (ConsumerGroup group = group(PARTITIONS)
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
            group.awaitHandlesMore(slow); // its other partition
            assertThat(slow.lines("TIMEOUT")).hasSize(1);
            slow.go();
            group.awaitFair(2);
            group.finish();
        }
    }

    @Test
    void handlerTimeout_concurrencyOne_waitingPartitionsMoveToo() throws Exception {
        try (ConsumerGroup group = group(PARTITIONS)
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
        try (ConsumerGroup group = group(PARTITIONS).with("leaseMs", 3_000).with("heartbeatMs", 1_000)) {
            group.start("a");
            group.awaitFair(1);
            for (int i = 0; i < 2; i++) {
                MemberProcess joining = group.begin("joining" + i);
                joining.awaitLine("READY");
                TimeUnit.MILLISECONDS.sleep(4L * i);
                joining.kill();
                group.awaitFair(1);
            }
            group.finish();
        }
    }
}
