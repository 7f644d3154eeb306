package io.eventsql.outbox;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.EventSqlBuilder;
import io.eventsql.UnknownStreamException;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: publishing and relaying hold one connection at a time.
 *
 * <p>Method: publisher and relay share pools of one connection. Another process creates the streams, so that this one has
 * to look them up.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Timeout(120)
class OutboxPoolOfOneIT {
    private final List<HikariDataSource> pools = new ArrayList<>();
    private TestCluster cluster;
    private String stream;

    @BeforeAll
    void openCluster() {
        cluster = TestCluster.ofShards(2);
    }

    @AfterAll
    void closeCluster() {
        cluster.close();
    }

    @BeforeEach
    void nameStream() {
        stream = TestStreams.newName();
    }

    @AfterEach
    void close() {
        cluster.closeInstances();
        pools.forEach(HikariDataSource::close);
        pools.clear();
    }

    private static HikariDataSource poolOfOne(String url) {
        return Pools.pool(TestCluster.server(), url, config -> {
            config.setMaximumPoolSize(1);
            config.setConnectionTimeout(5_000);
        });
    }

    private EventSql openOnPoolsOfOne(boolean standalone) throws SQLException {
        for (DataSource shard : cluster.dataSources()) {
            try (Connection connection = shard.getConnection()) {
                pools.add(poolOfOne(connection.getMetaData().getURL()));
            }
        }
        EventSqlBuilder builder = EventSql.builder(List.copyOf(pools));
        if (standalone) {
            pools.add(poolOfOne(((PGSimpleDataSource) TestCluster.newDatabase()).getUrl()));
            builder.outbox(pools.getLast());
        }
        return builder.build();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void publish_streamsOfAnotherProcess_areRelayed(boolean standalone) throws SQLException {
        EventSql other = cluster.open();
        try (EventSql eventSql = openOnPoolsOfOne(standalone)) {
            other.createStream(TestStreams.of(stream).withPartitions(1));
            List<Event> events = IntStream.range(0, 10)
                    .mapToObj(i -> Event.ofText("key" + i, "x"))
                    .toList();
            for (int call = 0; call < 20; call++) {
                try (Connection transaction = pools.getLast().getConnection()) {
                    transaction.setAutoCommit(false);
                    eventSql.outbox().publishAll(transaction, stream, events);
                    transaction.commit();
                }
            }
            other.close(); // from now on only this process relays
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(cluster.sum("SELECT count(*) FROM eventsql.events_" + stream))
                            .isEqualTo(200));
        }
    }

    private Connection connect(boolean standalone) throws SQLException {
        return standalone
                ? pools.getLast().getConnection()
                : cluster.dataSources().getFirst().getConnection();
    }

    /** The lookup on the caller's connection leaves the transaction usable. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void publish_unknownStream_isRejectedAndTransactionContinues(boolean standalone) throws SQLException {
        EventSql other = cluster.open();
        other.createStream(TestStreams.of(stream).withPartitions(1));
        try (EventSql eventSql = openOnPoolsOfOne(standalone)) {
            try (Connection transaction = connect(standalone)) {
                transaction.setAutoCommit(false);
                assertThatExceptionOfType(UnknownStreamException.class)
                        .isThrownBy(() -> eventSql.outbox().publish(transaction, "unknown", Event.ofText("x")));
                eventSql.outbox().publish(transaction, stream, Event.ofText("x"));
                transaction.commit();
            }
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(() -> assertThat(cluster.sum("SELECT count(*) FROM eventsql.events_" + stream))
                            .isOne());
        }
    }
}
