package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.Storage;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.internal.sql.AppendStatement;
import io.eventsql.internal.sql.MapFence;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;

/**
 * How consumers find new events: by notification, by fetching again, by polling. In databases of its own, where no instance of
 * another class listens.
 */
abstract class WakeUpContract extends Contract {
    private final ContractCluster own;

    WakeUpContract(int shards) {
        this(new ContractCluster(shards, Storage.ROWS));
    }

    private WakeUpContract(ContractCluster own) {
        super(own);
        this.own = own;
    }

    @AfterAll
    void closeOwn() {
        own.close();
    }

    private EventSql openConsuming() {
        return openConsuming(Duration.ofMinutes(1));
    }

    /** Opens an instance that the test closes itself, so that it does not listen during the next test. */
    private EventSql openConsuming(Duration pollInterval) {
        return cluster.open(settings -> settings.pollInterval(pollInterval));
    }

    private void awaitListening() {
        await().untilAsserted(() -> assertThat(listeners()).hasSize(shards));
    }

    private List<String> listeners() throws SQLException {
        List<String> pids = new ArrayList<>();
        for (DataSource dataSource : cluster.dataSources()) {
            pids.addAll(Sql.query(
                    dataSource,
                    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                            + " AND query LIKE 'LISTEN%_wake' AND state = 'idle'"));
        }
        return pids;
    }

    @Test
    void wakeUp_publishedByAnotherInstance_arrivesBeforeThePoll() {
        String stream = newStream();
        Handled handled = new Handled();
        try (EventSql consuming = openConsuming()) {
            consuming.subscribe(consumer(stream, "c"), handled::add);
            publisher.publish(stream, Event.ofText("key-0", "0")); // may be found by the first fetch
            handled.awaitSize(1);
            awaitListening();
            for (int i = 1; i < 8; i++) {
                publisher.publish(stream, Event.ofText("key-" + i, "" + i));
                handled.awaitSize(i + 1); // less than the poll interval
            }
        }
    }

    /** No event of these streams was handled before, so the consumers do not fetch them until a notification arrives. */
    @Test
    void wakeUp_firstEventsOfManyStreams_sendNotifications() {
        List<String> names = Stream.generate(this::newStream).limit(4).toList();
        Handled handled = new Handled();
        try (EventSql consuming = openConsuming()) {
            for (String name : names) {
                consuming.subscribe(consumer(name, "c"), handled::add);
            }
            awaitListening();
            for (String name : names) {
                publisher.publish(name, Event.ofText("key", name));
            }
            handled.awaitSize(names.size()); // less than the poll interval
        }
    }

    /**
     * The publisher notifies once and then not for a long time; as long as events keep coming, the consumer finds them by
     * fetching again. If the disk or the processors stall, the consumer stops fetching, as designed; then the attempt is
     * repeated.
     */
    @Test
    void wakeUp_eventsInQuickSuccession_areFoundWithoutNotifications() {
        await().pollDelay(Duration.ZERO).atMost(Duration.ofMinutes(1)).until(this::findsPagesWithoutNotifications);
    }

    /** Publishes for at most a second; returns whether more pages arrive than notifications were sent. */
    private boolean findsPagesWithoutNotifications() {
        String stream = newStream(1);
        AtomicInteger pages = new AtomicInteger();
        try (EventSql consuming = openConsuming();
                EventSql publishing = cluster.open(settings -> settings.notifyInterval(Duration.ofSeconds(10)))) {
            consuming.subscribeBatch(consumer(stream, "c"), page -> pages.incrementAndGet());
            long start = System.nanoTime();
            // Not one by one: on a busy machine the next event would come after the consumer has stopped fetching.
            Semaphore room = new Semaphore(8 * shards);
            while (pages.get() < 5 * shards && System.nanoTime() - start < TimeUnit.SECONDS.toNanos(1)) {
                room.acquireUninterruptibly();
                publishing
                        .publisher()
                        .publishAsync(stream, Event.ofText("tick"))
                        .whenComplete((position, failure) -> room.release());
            }
        }
        return pages.get() >= 5 * shards;
    }

    @Test
    void wakeUp_listeningConnectionIsCut_reconnects() throws SQLException {
        String stream = newStream();
        Handled handled = new Handled();
        try (EventSql consuming = openConsuming()) {
            consuming.subscribe(consumer(stream, "c"), handled::add);
            for (int round = 0; round < 2; round++) {
                awaitListening();
                cluster.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        + " WHERE datname = current_database() AND query LIKE 'LISTEN%_wake'");
                for (int i = 0; i < 10; i++) {
                    publisher.publish(stream, Event.ofText("key-" + i, round + "/" + i));
                }
                handled.awaitSize((round + 1) * 10);
            }
            handled.assertOnceAndInOrder();
        }
    }

    @Test
    void wakeUp_notificationLost_eventIsFoundByPolling() throws SQLException {
        String stream = newStream(1);
        Handled handled = new Handled();
        try (EventSql consuming = openConsuming(Duration.ofMillis(100))) {
            consuming.subscribe(consumer(stream, "c"), handled::add);
            publisher.publish(stream, Event.ofText("notified"));
            handled.awaitSize(1);
            int expected = 1;
            for (int shard = 0; shard < shards; shard++) {
                // As a publisher that is killed between its commit and its notification.
                try (Connection connection = database(shard).getConnection()) {
                    appendWithoutNotification(connection, stream);
                }
                handled.awaitSize(++expected);
            }
        }
    }

    private static void appendWithoutNotification(Connection connection, String stream) throws SQLException {
        int streamId =
                Integer.parseInt(Sql.query(connection, "SELECT stream_id FROM eventsql.stream WHERE name = ?", stream)
                        .getFirst());
        new AppendStatement(new SqlSchema("eventsql"))
                .execute(
                        connection,
                        UUID.randomUUID(),
                        1,
                        MapFence.of(1),
                        null,
                        new AppendStatement.Rows(
                                new String[] {stream},
                                new int[] {streamId},
                                new int[] {0},
                                new int[] {1},
                                new String[] {null},
                                new byte[][] {{1}},
                                new String[] {null}));
    }
}
