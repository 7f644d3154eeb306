package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: an event of a key that an open transaction publishes for keeps those before it in the outbox, or before it among the due
 * ones, from waiting. Those behind it wait, because the order is that of the outbox.
 */
@Timeout(180)
class ReservedKeysOutboxIT {
    private static final String STREAM = "accounts";

    private TestCluster cluster;
    private EventSql eventSql;

    private void open(EventSql opened) {
        eventSql = opened;
        eventSql.createStream(
                StreamSpec.of(STREAM).withPartitions(2).withSegmentSize(1_000).withKeyIndex());
    }

    @AfterEach
    void close() {
        cluster.close();
    }

    /** Begins a transaction that publishes for a key, on the key's shard. */
    private Connection reserve(DataSource shard, String key) throws SQLException {
        Connection transaction = shard.getConnection();
        transaction.setAutoCommit(false);
        eventSql.outbox().publish(transaction, STREAM, Event.ofText(key, "reserved"));
        return transaction;
    }

    private void awaitVersion(String key, long version) {
        await().atMost(Duration.ofSeconds(120)).until(() -> eventSql.keyVersion(STREAM, key) == version);
    }

    private List<String> texts(String key) {
        return eventSql.readKey(STREAM, key).events().stream()
                .map(StoredEvent::text)
                .toList();
    }

    @Test
    void send_transactionsHaveKeysOfWaitingEvents_eventsBeforeTheseArrive() throws SQLException {
        cluster = TestCluster.ofShards(2);
        try (HikariDataSource application = TestCluster.pool(TestCluster.newDatabase());
                EventSql both = EventSql.builder(cluster.dataSources())
                        .outbox(application)
                        .build()) {
            open(both);
            DataSource shard = cluster.dataSources().get(1);
            List<String> keys = keysOfShard1(100);
            int[] reserved = {25, 50, 75};
            List<Connection> transactions = new ArrayList<>();
            try {
                for (int i : reserved) {
                    transactions.add(reserve(shard, keys.get(i)));
                }
                try (Connection transaction = application.getConnection()) {
                    transaction.setAutoCommit(false);
                    for (String key : keys) {
                        both.outbox().publish(transaction, STREAM, Event.ofText(key, "2"));
                    }
                    transaction.commit();
                }
                both.outbox().committed();
                for (int i = 0; i < reserved.length; i++) {
                    awaitVersion(keys.get(reserved[i] - 1), 2);
                    assertThat(eventSql.keyVersion(STREAM, keys.get(reserved[i])))
                            .isEqualTo(1);
                    assertThat(eventSql.keyVersion(STREAM, keys.get(reserved[i] + 1)))
                            .isEqualTo(1);
                    transactions.get(i).commit();
                }
            } finally {
                for (Connection transaction : transactions) {
                    transaction.close();
                }
            }
            awaitVersion(keys.getLast(), 2);
            await().until(() -> Sql.queryLong(application, "SELECT count(*) FROM eventsql.outbox_transfer") == 0);
            for (int i : reserved) {
                assertThat(texts(keys.get(i))).containsExactly("1", "reserved", "2");
            }
            assertThat(Sql.queryLong(application, "SELECT count(*) FROM eventsql.outbox_refused"))
                    .isZero();
        }
    }

    /** Publishes keys until as many are in the second shard, and returns these. */
    private List<String> keysOfShard1(int count) {
        List<String> keys = new ArrayList<>();
        for (int i = 0; keys.size() < count; i++) {
            String key = "k" + i;
            if (eventSql.publisher().publish(STREAM, Event.ofText(key, "1")).shard() == 1) {
                keys.add(key);
            }
        }
        return keys;
    }

    @Test
    void schedule_transactionHasTheKeyOfTheLastDueEvent_othersArrive() throws SQLException {
        cluster = TestCluster.ofShards(1);
        open(cluster.open());
        DataSource shard = cluster.dataSources().getFirst();
        Instant due = Instant.now().plusSeconds(10);
        for (int i = 0; i < 25; i++) {
            eventSql.publisher().publish(STREAM, Event.ofText("k" + i, "1"));
            eventSql.publisher().schedule(STREAM, Event.ofText("k" + i, "2"), due);
        }
        List<String> order = Sql.query(shard, "SELECT key FROM eventsql.scheduled_event ORDER BY due_at, id");
        String last = order.getLast();
        try (Connection transaction = reserve(shard, last)) {
            for (String key : order.subList(0, order.size() - 1)) {
                awaitVersion(key, 2);
            }
            assertThat(eventSql.keyVersion(STREAM, last)).isEqualTo(1);
            transaction.commit();
        }
        awaitVersion(last, 3);
        assertThat(texts(last)).containsExactly("1", "reserved", "2");
    }
}
