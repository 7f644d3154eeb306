package io.eventsql.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.tuple;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.ScheduledEvent;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import javax.sql.DataSource;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Goal: an event scheduled in a transaction of the application is scheduled with it or not at all, in any outbox. */
@Timeout(120)
class ScheduledInTransactionIT {
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static TestCluster cluster;
    private static HikariDataSource standalone;
    private static EventSql eventSql;

    private final String stream = TestStreams.newName();

    @BeforeAll
    static void open() {
        cluster = TestCluster.ofShards(2);
        standalone = TestCluster.pool(TestCluster.newDatabase());
        eventSql = EventSql.builder(cluster.dataSources()).outbox(standalone).build();
    }

    @BeforeEach
    void createStream() {
        eventSql.createStream(TestStreams.of(stream).withPartitions(1));
    }

    @AfterAll
    static void close() {
        eventSql.close();
        standalone.close();
        cluster.close();
    }

    private List<String> texts() {
        List<String> all = new ArrayList<>();
        for (int shard = 0; shard < 2; shard++) {
            eventSql.read(new EventPosition(stream, shard, 0, 0), 1_000).stream()
                    .map(StoredEvent::text)
                    .forEach(all::add);
        }
        return all;
    }

    private Connection begin(DataSource database) throws SQLException {
        Connection connection = database.getConnection();
        connection.setAutoCommit(false);
        return connection;
    }

    @Test
    void schedule_inEachOutbox_isAppendedToTheShardOfItsKey() throws SQLException {
        List<String> expected = new ArrayList<>();
        for (DataSource database :
                List.of(cluster.dataSources().get(0), cluster.dataSources().get(1), standalone)) {
            try (Connection transaction = begin(database)) {
                for (int i = 0; i < 10; i++) {
                    String text = expected.size() + "";
                    Instant due = Instant.now().plusMillis(100L * (i % 3));
                    eventSql.outbox().schedule(transaction, stream, Event.ofText("k" + i, text), due);
                    expected.add(text);
                }
                transaction.commit();
            }
        }
        await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).containsExactlyInAnyOrderElementsOf(expected));
        for (int shard = 0; shard < 2; shard++) {
            int of = shard;
            List<String> keys = eventSql.read(new EventPosition(stream, shard, 0, 0), 1_000).stream()
                    .map(StoredEvent::key)
                    .distinct()
                    .toList();
            assertThat(eventSql.read(new EventPosition(stream, 1 - of, 0, 0), 1_000))
                    .noneMatch(e -> keys.contains(e.key()));
        }
    }

    @Test
    void schedule_rolledBack_isNeverAppended_committedLate_isAppendedAtOnce() throws SQLException {
        try (Connection transaction = begin(standalone)) {
            eventSql.outbox().schedule(transaction, stream, Event.ofText("k", "no"), Instant.now());
            transaction.rollback();
            UUID id = eventSql.outbox().schedule(transaction, stream, Event.ofText("k", "late"), Instant.now());
            assertThat(eventSql.cancelScheduled(id)).isFalse();
            // Another event that is due later is appended before the commit.
            eventSql.publisher()
                    .schedule(stream, Event.ofText("k", "before"), Instant.now().plusMillis(50));
            await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).containsExactly("before"));
            transaction.commit();
        }
        await().atMost(DEADLINE).untilAsserted(() -> assertThat(texts()).containsExactly("before", "late"));
    }

    @Test
    void schedule_withJooq_isListedAndCancelled() throws SQLException {
        UUID id = DSL.using(standalone, SQLDialect.POSTGRES)
                .transactionResult(trx -> eventSql.outbox()
                        .schedule(
                                trx,
                                stream,
                                Event.ofText("k", "x"),
                                Instant.now().plusSeconds(3_600)));
        assertThat(eventSql.scheduledEvents(stream, null, 10))
                .extracting(ScheduledEvent::id, ScheduledEvent::database)
                .containsExactly(tuple(id, "outbox0"));
        assertThat(eventSql.scheduleBacklog("outbox0").events()).isOne();
        assertThat(eventSql.cancelScheduled(id)).isTrue();
        assertThat(Sql.queryLong(standalone, "SELECT count(*) FROM eventsql.scheduled_event"))
                .isZero();
    }

    @Test
    void schedule_autocommit_isRejected() throws SQLException {
        try (Connection connection = standalone.getConnection()) {
            assertThatExceptionOfType(InvalidInputException.class)
                    .isThrownBy(() -> eventSql.outbox().schedule(connection, stream, Event.ofText("x"), Instant.now()))
                    .withMessageContaining("autocommit");
        }
    }
}
