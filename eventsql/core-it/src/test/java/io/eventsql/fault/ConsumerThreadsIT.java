package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.PartitionState;
import io.eventsql.Settings;
import io.eventsql.Subscription;
import io.eventsql.fixture.DelegatingDataSource;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Goal: no error and no interrupt ends a thread that consumes, so that no lease is kept without a thread that works on it.
 * Method: the data source throws errors, or interrupts its caller, when it is called by one of these threads.
 */
@Timeout(120)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ConsumerThreadsIT {
    private static final Duration DEADLINE = Duration.ofSeconds(120);
    private static final int FAULTS = 3;

    private final TestCluster cluster = TestCluster.ofShards(1);
    private String stream;

    @BeforeEach
    void nameStream() {
        stream = TestStreams.newName();
    }

    @AfterEach
    void closeInstances() {
        cluster.closeInstances();
    }

    @AfterAll
    void closeCluster() {
        cluster.close();
    }

    /** What happens to a thread that borrows a connection. */
    enum Fault {
        ERROR,
        OUT_OF_MEMORY,
        INTERRUPT
    }

    /** Lets the next calls of one thread fail. */
    private static final class FaultyDataSource extends DelegatingDataSource {
        private final AtomicInteger left = new AtomicInteger();
        private volatile String thread = "";
        private volatile Fault fault = Fault.ERROR;

        FaultyDataSource(DataSource target) {
            super(target);
        }

        void plan(String newThread, Fault newFault) {
            fault = newFault;
            thread = newThread;
            left.set(newFault == Fault.INTERRUPT ? 1 : FAULTS);
        }

        /** Lets all further calls of the thread fail. */
        void planAll(String newThread, Fault newFault) {
            plan(newThread, newFault);
            left.set(Integer.MAX_VALUE);
        }

        boolean isDone() {
            return left.get() <= 0;
        }

        @Override
        public Connection getConnection() throws SQLException {
            boolean isPlanned = !thread.isEmpty()
                    && Thread.currentThread().getName().startsWith(thread)
                    && left.getAndDecrement() > 0;
            if (isPlanned) {
                switch (fault) {
                    case ERROR -> throw new NoClassDefFoundError("a class of the pool");
                    case OUT_OF_MEMORY -> throw new OutOfMemoryError("thrown by the test");
                    case INTERRUPT -> Thread.currentThread().interrupt();
                }
            }
            return super.getConnection();
        }
    }

    static Stream<Arguments> faultsOfThreads() {
        return Stream.of("eventsql-fetch-", "eventsql-commit-", "eventsql-lease-")
                .flatMap(thread -> Stream.of(Fault.values()).map(fault -> Arguments.of(thread, fault)));
    }

    private static Settings settings() {
        return Settings.builder()
                .pollInterval(Duration.ofMillis(100))
                .lease(Duration.ofSeconds(3))
                .heartbeat(Duration.ofMillis(200))
                .build();
    }

    private void publish(EventSql eventSql, int from, int to) {
        for (int i = from; i < to; i++) {
            eventSql.publisher().publish(stream, Event.ofText("key" + i, "value" + i));
        }
    }

    private void awaitDrained(EventSql eventSql) {
        await().atMost(DEADLINE)
                .until(() -> eventSql.consumer(stream, "c").state().stream()
                        .allMatch(state -> state.lag() == 0 && state.member() != null));
    }

    @ParameterizedTest(name = "{0} {1}")
    @MethodSource("faultsOfThreads")
    void connection_failsUnexpectedly_threadContinues(String thread, Fault fault) {
        FaultyDataSource dataSource = new FaultyDataSource(cluster.dataSources().getFirst());
        try (EventSql eventSql =
                EventSql.builder(dataSource).settings(settings()).build()) {
            eventSql.createStream(TestStreams.of(stream).withPartitions(2));
            Handled handled = new Handled();
            eventSql.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
            publish(eventSql, 0, 10);
            handled.awaitSize(10);
            awaitDrained(eventSql);
            dataSource.plan(thread, fault);
            publish(eventSql, 10, 20);
            await().atMost(DEADLINE).until(dataSource::isDone);
            publish(eventSql, 20, 30);
            handled.awaitSize(30);
            awaitDrained(eventSql);
            assertLeasesAreRenewed(eventSql);
            handled.assertOnceAndInOrder();
        }
    }

    @Test
    void fetchThread_keepsFailing_otherMembersGetItsPartitions() {
        FaultyDataSource dataSource = new FaultyDataSource(cluster.dataSources().getFirst());
        EventSql good = cluster.open(
                settings -> settings.pollInterval(Duration.ofMillis(100)).lease(Duration.ofSeconds(3)));
        good.createStream(TestStreams.of(stream).withPartitions(4));
        Handled handled = new Handled();
        Settings settings = Settings.builder()
                .pollInterval(Duration.ofMillis(100))
                .lease(Duration.ofSeconds(3))
                .build();
        try (EventSql faulty = EventSql.builder(dataSource).settings(settings).build()) {
            faulty.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
            publish(good, 0, 20);
            handled.awaitSize(20);
            awaitDrained(good);
            dataSource.planAll("eventsql-fetch-", Fault.ERROR);
            publish(good, 20, 40);
            good.subscribe(ConsumerSpec.of(stream, "c"), handled::add);
            handled.awaitSize(40);
            await().atMost(DEADLINE)
                    .until(() -> good.positions(stream, "c").stream().allMatch(p -> p.lag() == 0));
            handled.assertOnceAndInOrder();
            dataSource.plan("", Fault.ERROR); // so that closing it fails nowhere
        }
    }

    private void assertLeasesAreRenewed(EventSql eventSql) {
        PartitionState before = eventSql.consumer(stream, "c").state().getFirst();
        await().atMost(DEADLINE).untilAsserted(() -> {
            PartitionState now = eventSql.consumer(stream, "c").state().getFirst();
            assertThat(now.leaseUntil()).isAfter(before.leaseUntil());
        });
    }

    @Test
    void close_callerInterrupted_memberLeavesAtOnce() throws Exception {
        EventSql eventSql =
                cluster.open(settings -> settings.lease(Duration.ofMinutes(10)).heartbeat(Duration.ofMinutes(5)));
        eventSql.createStream(TestStreams.of(stream).withPartitions(1));
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        Subscription member = eventSql.subscribe(ConsumerSpec.of(stream, "c"), event -> {
            begun.countDown();
            release.await();
        });
        publish(eventSql, 0, 1);
        begun.await();
        CompletableFuture<Boolean> closed = new CompletableFuture<>();
        Thread closing = Thread.ofVirtual().start(() -> closed.complete(member.close(Duration.ofMinutes(5))));
        await().atMost(DEADLINE).until(() -> !member.isRunning());
        closing.interrupt();
        assertThat(closed.join()).isFalse();
        await().atMost(DEADLINE)
                .until(() -> cluster.sum("SELECT count(*) FROM eventsql.consumer_member"
                                + " JOIN eventsql.consumer USING (consumer_id) JOIN eventsql.stream s USING (stream_id)"
                                + " WHERE s.name = '" + stream + "'")
                        == 0);
        release.countDown();
    }
}
