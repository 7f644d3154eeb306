package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Goal: members share partitions and keep their leases in processes that have more members than one heartbeat is for. */
class ManyMembersIT {
    private static final String STREAM = "many_members";
    private static final int CONSUMERS = 104;
    private static final Duration LEASE = Duration.ofSeconds(6);
    private static final String HOLDERS =
            "SELECT count(*) FROM eventsql.consumer_partition WHERE member_id IS NOT NULL";
    /** How many members hold one partition each. */
    private static final String EVEN_HOLDERS = "SELECT count(*) FROM (SELECT FROM eventsql.consumer_partition"
            + " WHERE member_id IS NOT NULL GROUP BY consumer_id, member_id HAVING count(*) = 1) m";

    private TestCluster cluster;

    @BeforeEach
    void startDatabase() {
        cluster = TestCluster.ofShards(1);
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    private EventSql open() {
        return cluster.open(settings -> settings.lease(LEASE).heartbeat(Duration.ofSeconds(1)));
    }

    private static List<Handled> subscribeAll(EventSql eventSql) {
        return IntStream.range(0, CONSUMERS)
                .mapToObj(i -> {
                    Handled handled = new Handled();
                    eventSql.subscribe(ConsumerSpec.of(STREAM, "c" + i), handled::add);
                    return handled;
                })
                .toList();
    }

    private void awaitCount(String query, long expected) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(
                        () -> assertThat(Sql.queryLong(cluster.dataSources().getFirst(), query))
                                .isEqualTo(expected));
    }

    private static void publish(EventSql eventSql, int from) {
        eventSql.publisher()
                .publishAll(
                        STREAM,
                        IntStream.range(from, from + 20)
                                .mapToObj(i -> Event.ofText("key" + i, "" + i))
                                .toList());
    }

    @Test
    void moreMembersThanAHeartbeatIsFor_shareAndKeepPartitions() throws SQLException {
        EventSql first = open();
        first.createStream(TestStreams.of(STREAM).withPartitions(2));
        List<Handled> byFirst = subscribeAll(first);
        awaitCount(HOLDERS, 2L * CONSUMERS);
        publish(first, 0);
        byFirst.forEach(handled -> handled.awaitSize(20));

        EventSql second = open();
        List<Handled> bySecond = subscribeAll(second);
        awaitCount(EVEN_HOLDERS, 2L * CONSUMERS);
        long epochs = epochs();
        publish(first, 20);
        // Who missed its turn would lose its partition, and a take raises the epoch.
        awaitCount(
                "SELECT count(*) FROM eventsql.consumer_partition WHERE expires_at > " + afterAllLeases(),
                2L * CONSUMERS);
        assertThat(epochs()).as("no lease has ended").isEqualTo(epochs);
        for (int i = 0; i < CONSUMERS; i++) {
            Handled ofFirst = byFirst.get(i);
            Handled ofSecond = bySecond.get(i);
            await().atMost(Duration.ofSeconds(120)).until(() -> ofFirst.size() + ofSecond.size() >= 40);
            assertThat(ofFirst.size() + ofSecond.size()).isEqualTo(40);
        }

        second.close();
        publish(first, 40);
        for (int i = 0; i < CONSUMERS; i++) {
            byFirst.get(i).awaitSize(60 - bySecond.get(i).size());
        }
    }

    /** Returns a time after which a lease ends only if it has been renewed since all that hold now have ended, as SQL. */
    private String afterAllLeases() throws SQLException {
        String end = Sql.query(
                        cluster.dataSources().getFirst(), "SELECT max(expires_at) FROM eventsql.consumer_partition")
                .getFirst();
        return "'" + end + "'::timestamptz + interval '" + LEASE.toSeconds() + " s'";
    }

    private long epochs() throws SQLException {
        return Sql.queryLong(cluster.dataSources().getFirst(), "SELECT sum(epoch) FROM eventsql.consumer_offset");
    }
}
