package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.Settings;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;

/** How members share, release and take over partitions. */
class PartitionAssignmentIT extends ConsumerFixture {
    /** So long that it cannot expire during a test. */
    private static final Duration LONG_LEASE = Duration.ofMinutes(5);

    private EventSql process() {
        return cluster.open(settings -> settings.lease(LONG_LEASE).heartbeat(Duration.ofMinutes(2)));
    }

    private List<Long> partitionCounts(String stream) {
        Map<String, Long> held = state(stream).stream()
                .filter(p -> p.member() != null)
                .collect(Collectors.groupingBy(PartitionState::member, Collectors.counting()));
        return held.values().stream().sorted().toList();
    }

    private void awaitPartitionCounts(String stream, Long... expected) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(partitionCounts(stream)).containsExactly(expected));
    }

    @Test
    void subscribe_membersJoinAndLeave_partitionsAreRebalanced() {
        String stream = newStream(5);
        Handled handled = new Handled();
        publish(stream, 0, 200, 50);
        EventSql first = process();
        EventSql second = process();
        Subscription one = first.subscribe(consumer(stream), handled::add);
        awaitPartitionCounts(stream, 5L);
        Subscription two = second.subscribe(consumer(stream), handled::add);
        awaitPartitionCounts(stream, 2L, 3L);
        publish(stream, 200, 400, 50);
        Subscription three = first.subscribe(consumer(stream), handled::add); // a second member in this process
        awaitPartitionCounts(stream, 1L, 2L, 2L);
        publish(stream, 400, 600, 50);
        handled.awaitSize(600);
        two.close();
        awaitPartitionCounts(stream, 2L, 3L);
        one.close();
        awaitPartitionCounts(stream, 5L);
        publish(stream, 600, 800, 50);
        handled.awaitSize(800);
        three.close();
        awaitLag(stream, 0);
        assertThat(handled.texts()).as("every event once").containsExactlyInAnyOrderElementsOf(texts(0, 800));
        assertOrderOfKeys(handled.events());
        assertThat(state(stream)).allMatch(p -> p.member() == null && p.leaseUntil() == null);
    }

    @Test
    void subscribe_moreMembersThanPartitions_idleMembersTakeOver() {
        String stream = newStream(2);
        Handled handled = new Handled();
        List<Subscription> members = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            members.add(eventSql.subscribe(consumer(stream), handled::add));
        }
        awaitPartitionCounts(stream, 1L, 1L);
        for (int closed = 0; closed < 3; closed++) {
            members.get(closed).close();
            publish(stream, closed * 10, closed * 10 + 10, 10);
            handled.awaitSize(closed * 10 + 10);
        }
        awaitPartitionCounts(stream, 2L);
        members.get(3).close();
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 30));
    }

    @Test
    void maxPartitions_limitsOneMember_othersTakeTheRest() {
        String stream = newStream(5);
        Handled handled = new Handled();
        Subscription few = process().subscribe(consumer(stream).withMaxPartitions(2), handled::add);
        awaitPartitionCounts(stream, 2L);
        assertThat(state(stream)).filteredOn(p -> p.member() == null).hasSize(3);
        Subscription rest = process().subscribe(consumer(stream), handled::add);
        awaitPartitionCounts(stream, 2L, 3L);
        publish(stream, 0, 100, 50);
        handled.awaitSize(100);
        rest.close();
        awaitPartitionCounts(stream, 2L);
        few.close();
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 100));
    }

    @Test
    void close_handlerRunning_nextMemberContinuesAfterItsEvent() throws Exception {
        String stream = newStream(1);
        publish(stream, 0, 50, 5);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        Handled ofFirst = new Handled();
        Handled ofSecond = new Handled();
        Subscription first = process().subscribe(consumer(stream), event -> {
            if (event.offset() == 9) {
                begun.countDown();
                release.await();
            }
            ofFirst.add(event);
        });
        begun.await();
        // The joining member claims the surplus of the first, which has none with one partition.
        Subscription second = process().subscribe(consumer(stream), ofSecond::add);
        Thread closer = Thread.ofVirtual().start(first::close);
        // A member that closes asks for no partitions. Before that, the first would handle what follows its event.
        await().until(() -> Sql.queryLong(
                        cluster.dataSources().getFirst(),
                        "SELECT count(*) FROM eventsql.consumer_member WHERE max_partitions = 0")
                == 1);
        release.countDown();
        closer.join();
        ofSecond.awaitSize(40);
        second.close();
        assertThat(ofFirst.texts()).containsExactlyElementsOf(texts(0, 10));
        assertThat(ofSecond.texts()).containsExactlyElementsOf(texts(10, 50));
    }

    @Test
    void lease_memberIsCutOff_othersTakeOver() throws SQLException {
        String stream = newStream();
        publish(stream, 0, 40, 40);
        Handled handled = new Handled();
        SwitchableDataSource network =
                new SwitchableDataSource(cluster.dataSources().getFirst());
        Settings settings = Settings.builder().lease(Duration.ofSeconds(1)).build();
        try (EventSql cutOff = EventSql.builder(network).settings(settings).build()) {
            Subscription first = cutOff.subscribe(consumer(stream), handled::add);
            handled.awaitSize(40);
            awaitLag(stream, 0);
            assertThat(first.isRunning()).isTrue();
            network.setAvailable(false); // so it cannot deregister
            publish(stream, 40, 80, 40);
            EventSql other = cluster.open(any -> any.lease(Duration.ofSeconds(1)));
            try (Subscription ignored = other.subscribe(consumer(stream), handled::add)) {
                handled.awaitSize(80);
            }
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, 80));
    }

    @Test
    void handlerTimeout_handlerHangs_partitionMovesToAnotherMember() throws Exception {
        String stream = newStream(1);
        publish(stream, 0, 10, 10);
        CountDownLatch release = new CountDownLatch(1);
        Handled handled = new Handled();
        Collection<String> calls = new ConcurrentLinkedQueue<>();
        EventSql stuckProcess = EventSql.builder(cluster.dataSources())
                .settings(Settings.builder().lease(Duration.ofSeconds(2)).build())
                .listener(new ConsumerListener() {
                    @Override
                    public void handlerTimedOut(ConsumerPartition partition, Duration runningFor) {
                        calls.add("timed out " + partition.partition());
                    }

                    @Override
                    public void partitionRevoked(ConsumerPartition partition, Reason reason) {
                        calls.add("revoked " + partition.partition() + " " + reason);
                    }
                })
                .build();
        ConsumerSpec spec = consumer(stream).withHandlerTimeout(Duration.ofMillis(500));
        Handled ofStuck = new Handled();
        Subscription stuck = stuckProcess.subscribe(spec, event -> {
            if (event.offset() == 3) {
                release.await();
            }
            ofStuck.add(event);
        });
        ofStuck.awaitSize(3);
        EventSql other = cluster.open(); // with a long lease, so that it keeps the partitions it takes
        try (Subscription ignored = other.subscribe(spec, handled::add)) {
            handled.awaitSize(7);
            awaitLag(stream, 0);
            assertThat(calls).containsExactly("timed out 0", "revoked 0 LOST");
            release.countDown();
            ofStuck.awaitSize(4);
            publish(stream, 10, 20, 10);
            handled.awaitSize(17);
            assertThat(ofStuck.texts()).as("events of the stuck handler").containsExactlyElementsOf(texts(0, 4));
            assertThat(stuck.isRunning()).isTrue();
        } finally {
            release.countDown();
            stuckProcess.close();
        }
        assertThat(handled.texts()).containsExactlyElementsOf(texts(3, 20));
    }

    /** The callback runs on the thread that renews the leases of all members of the process. */
    @Test
    void handlerTimeout_listenerClosesTheMember_otherLeasesAreRenewed() throws Exception {
        String stream = newStream(1);
        String other = newStream(1);
        CountDownLatch release = new CountDownLatch(1);
        AtomicReference<Subscription> stuck = new AtomicReference<>();
        CompletableFuture<Boolean> hasEnded = new CompletableFuture<>();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                .settings(Settings.builder()
                        .lease(Duration.ofSeconds(2))
                        .heartbeat(Duration.ofMillis(200))
                        .build())
                .listener(new ConsumerListener() {
                    @Override
                    public void handlerTimedOut(ConsumerPartition partition, Duration runningFor) {
                        hasEnded.complete(stuck.get().close(Duration.ofMinutes(10)));
                    }
                })
                .build()) {
            Handled handled = new Handled();
            process.subscribe(consumer(other), handled::add);
            stuck.set(process.subscribe(
                    consumer(stream).withHandlerTimeout(Duration.ofMillis(500)), event -> release.await()));
            await().until(() -> state(other).getFirst().leaseUntil() != null);
            publish(stream, 0, 1, 1);
            assertThat(hasEnded.get(60, TimeUnit.SECONDS)).isFalse();
            Instant before = state(other).getFirst().leaseUntil();
            await().until(() -> {
                Instant now = state(other).getFirst().leaseUntil();
                return now != null && before != null && now.isAfter(before);
            });
            release.countDown();
            await().until(() -> stuck.get().close(Duration.ZERO));
        } finally {
            release.countDown();
        }
    }

    @Test
    void lease_handlerRunsLonger_partitionIsKept() {
        String stream = newStream(1);
        publish(stream, 0, 3, 3);
        Handled handled = new Handled();
        EventSql process = cluster.open(settings -> settings.lease(Duration.ofSeconds(1)));
        EventSql other = cluster.open(settings -> settings.lease(Duration.ofSeconds(1)));
        CountDownLatch expired = new CountDownLatch(1);
        Subscription slow = process.subscribe(consumer(stream), event -> {
            expired.await();
            handled.add(event);
        });
        await().until(() -> !partitionCounts(stream).isEmpty());
        long epoch = state(stream).getFirst().epoch();
        Handled ofOther = new Handled();
        try (Subscription ignored = other.subscribe(consumer(stream), ofOther::add)) {
            // Three times the lease, by the database's clock.
            await().pollInterval(Duration.ofMillis(20))
                    .until(() -> Sql.queryLong(
                                    cluster.dataSources().getFirst(),
                                    "SELECT count(*) FROM eventsql.consumer_offset"
                                            + " WHERE clock_timestamp() - committed_at > interval '3 seconds'"
                                            + " AND epoch = " + epoch)
                            > 0);
            assertThat(state(stream).getFirst().epoch()).isEqualTo(epoch);
            expired.countDown();
            handled.awaitSize(3);
            awaitLag(stream, 0);
            slow.close();
        }
        assertThat(handled.texts()).containsExactlyElementsOf(texts(0, 3));
        assertThat(ofOther.size()).isZero();
    }

    @Test
    void close_lastMember_leavesNoThreadBusy() throws Exception {
        String stream = newStream();
        EventSql process = cluster.open(settings -> settings.heartbeat(Duration.ofMillis(100)));
        Handled handled = new Handled();
        try (Subscription ignored = process.subscribe(consumer(stream), handled::add)) {
            publish(stream, 0, 10, 10);
            handled.awaitSize(10);
        }
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Map<Long, Long> before = cpuNanosOfLibraryThreads(threads);
        assertThat(before).isNotEmpty();
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(3); // many heartbeats
        await().until(() -> System.nanoTime() > until);
        cpuNanosOfLibraryThreads(threads).forEach((id, nanos) -> {
            ThreadInfo thread = threads.getThreadInfo(id);
            if (before.containsKey(id) && thread != null) {
                assertThat(nanos - before.get(id))
                        .as("CPU time of idle thread %s", thread.getThreadName())
                        .isLessThan(TimeUnit.MILLISECONDS.toNanos(500));
            }
        });
    }

    private static Map<Long, Long> cpuNanosOfLibraryThreads(ThreadMXBean threads) {
        return Arrays.stream(threads.getThreadInfo(threads.getAllThreadIds()))
                .filter(thread -> thread != null && thread.getThreadName().startsWith("eventsql-"))
                .collect(Collectors.toMap(
                        ThreadInfo::getThreadId, thread -> threads.getThreadCpuTime(thread.getThreadId())));
    }

    @Test
    void idle_manyStreamsAndConsumers_sendAtMostTwoStatementsPerSecond() {
        try (TestCluster quiet = TestCluster.ofShards(1)) {
            Borrows borrows = new Borrows(quiet.dataSources().getFirst());
            EventSql process = quiet.open(List.of(borrows));
            for (int stream = 0; stream < 10; stream++) {
                process.createStream(TestStreams.of("idle" + stream).withPartitions(2));
                for (int listener = 0; listener < 5; listener++) {
                    process.subscribe(ConsumerSpec.of("idle" + stream, "c" + listener), event -> {});
                }
            }
            String held = "SELECT count(*) FROM eventsql.consumer_partition WHERE member_id IS NOT NULL";
            await().atMost(Duration.ofSeconds(120))
                    .until(() -> Sql.queryLong(quiet.dataSources().getFirst(), held) == 100);
            AtomicReference<Reading> last = new AtomicReference<>(borrows.read());
            await().atMost(Duration.ofSeconds(120))
                    .pollDelay(Duration.ofSeconds(10))
                    .pollInterval(Duration.ofSeconds(10))
                    .untilAsserted(() -> {
                        Reading now = borrows.read();
                        double perSecond = now.perSecondSince(last.getAndSet(now));
                        System.out.printf("Idle, 10 streams, 50 consumers: %.2f statements/s%n", perSecond);
                        assertThat(perSecond).isPositive().isLessThanOrEqualTo(2);
                    });
        }
    }

    /** Counts the connections that are borrowed: each statement of an idle library is a transaction on a borrowed one. */
    private static final class Borrows extends DelegatingDataSource {
        private final AtomicLong count = new AtomicLong();

        Borrows(DataSource delegate) {
            super(delegate);
        }

        @Override
        public Connection getConnection() throws SQLException {
            count.incrementAndGet();
            return super.getConnection();
        }

        Reading read() {
            return new Reading(count.get(), System.nanoTime());
        }
    }

    private record Reading(long borrows, long atNanos) {
        double perSecondSince(Reading before) {
            return (borrows - before.borrows) * 1e9 / (atNanos - before.atNanos);
        }
    }
}
