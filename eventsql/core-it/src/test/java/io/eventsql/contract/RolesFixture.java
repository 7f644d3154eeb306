package io.eventsql.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Roles;
import io.eventsql.fixture.Sql;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;

/**
 * Base class of tests of roles: the roles of {@code roles.sql} in a new database, whose owner has created a stream. Method: each
 * process logs in as a role of its own; segments have 100 events, so that segments are added all the time.
 */
@Timeout(120)
abstract class RolesFixture {
    static final StreamSpec STREAM = StreamSpec.of("orders").withPartitions(1).withSegmentSize(100);
    static final StreamSpec DEAD_LETTERS =
            StreamSpec.of("orders_dead").withPartitions(1).withSegmentSize(100);
    static final RetryPolicy ONE_ATTEMPT = RetryPolicy.defaults().withMaxAttempts(1);
    static final String PERMISSION_DENIED = "42501";

    final List<AutoCloseable> opened = new ArrayList<>();
    DataSource database;
    EventSql owner;
    HikariDataSource ownerPool;

    @BeforeEach
    void prepareDatabase() throws Exception {
        database = createDatabase();
        ownerPool = login("eventsql_owner");
        owner = open(ownerPool);
        owner.createStream(STREAM);
    }

    DataSource createDatabase() throws Exception {
        return RolesDatabases.create(true);
    }

    @AfterEach
    void closeAll() throws Exception {
        for (AutoCloseable one : opened.reversed()) {
            one.close();
        }
    }

    HikariDataSource login(String... roles) throws SQLException {
        HikariDataSource pool = Roles.pool(database, Roles.create(roles));
        opened.add(pool);
        return pool;
    }

    EventSql open(DataSource pool) {
        EventSql eventSql = EventSql.builder(pool)
                .settings(Settings.builder()
                        .maxBatchEvents(50)
                        .publishTimeout(Duration.ofSeconds(5))
                        .build())
                .build();
        opened.add(eventSql);
        return eventSql;
    }

    EventSql as(String... roles) throws SQLException {
        return open(login(roles));
    }

    static List<Event> events(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(i -> Event.ofText("k" + i % 10, "" + i))
                .toList();
    }

    static void publish(EventSql publisher, int from, int to) {
        for (int i = from; i < to; i += 50) {
            publisher.publisher().publishAll("orders", events(i, Math.min(i + 50, to)));
        }
    }

    static List<StoredEvent> read(EventSql reader, String stream, int events) {
        List<StoredEvent> read = reader.read(new EventPosition(stream, 0, 0, 0), events + 1);
        assertThat(read).hasSize(events);
        return read;
    }

    List<String> segments() throws SQLException {
        return Sql.query(
                ownerPool,
                "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'eventsql.events_orders__p0'::regclass");
    }

    /** Asserts that so many streams have an append function, and that it has the owner, the rights and the grants of append_v1. */
    void assertAppendFunctionsAreLikeAppend(int streams) throws SQLException {
        List<String> likeness = Sql.query(Roles.admin(database), """
                SELECT p.proowner = a.proowner AND p.prosecdef = a.prosecdef
                   AND ARRAY(SELECT x::text FROM aclexplode(p.proacl) x ORDER BY 1)
                     = ARRAY(SELECT x::text FROM aclexplode(a.proacl) x ORDER BY 1)
                FROM pg_proc p, pg_proc a
                WHERE p.proname ~ '^append_v2_' AND a.oid = 'eventsql.append_v1'::regproc""");
        assertThat(likeness).hasSize(streams).containsOnly("t");
    }

    static void assertDenied(DataSource role, String... statements) {
        for (String statement : statements) {
            assertThatThrownBy(() -> Sql.execute(role, statement))
                    .as(statement)
                    .isInstanceOfSatisfying(
                            SQLException.class,
                            e -> assertThat(e.getSQLState()).as(statement).isEqualTo(PERMISSION_DENIED));
        }
    }

    static void publishInTransactions(EventSql publisher, DataSource pool, int events) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            connection.setAutoCommit(false);
            for (int i = 0; i < events; i += 50) {
                publisher.outbox().publishAll(connection, "orders", events(i, i + 50));
                connection.commit();
            }
            connection.setAutoCommit(true);
        }
    }
}
