package io.eventsql.runner.drivers.pgq;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.Event;
import io.eventsql.runner.driver.Jdbc;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Calls of PgQ's functions, each in its own transaction. Thread-safe. */
final class PgQStatements {
    private final DataSource database;
    private final boolean bulk;

    /** @param bulk whether several events are inserted directly, as PgQ's documentation proposes for large loads */
    PgQStatements(DataSource database, boolean bulk) {
        this.database = database;
        this.bulk = bulk;
    }

    String version() throws SQLException {
        return Jdbc.text(
                database, "SELECT 'PgQ ' || pgq.version() || ' on PostgreSQL ' || current_setting('server_version')");
    }

    /** Creates a queue in which each {@link #tick} ends a batch if there are new events. */
    void createQueue(String queue) throws SQLException {
        Jdbc.execute(database, "SELECT pgq.create_queue(?)", queue);
        Jdbc.execute(database, "SELECT pgq.set_queue_config(?, 'ticker_max_count', '1')", queue);
    }

    void tick(String queue) throws SQLException {
        Jdbc.execute(database, "SELECT pgq.ticker(?)", queue);
    }

    /** Registers a consumer at the queue's first tick, so that it receives all events. */
    void register(String queue, String consumer) throws SQLException {
        Jdbc.execute(
                database,
                "SELECT pgq.register_consumer_at(q.queue_name, ?, min(t.tick_id)) FROM pgq.queue q"
                        + " JOIN pgq.tick t ON t.tick_queue = q.queue_id WHERE q.queue_name = ? GROUP BY q.queue_name",
                consumer,
                queue);
    }

    /** Inserts the events of a call. */
    void insert(String queue, List<Event> events) throws SQLException {
        try (Connection connection = database.getConnection()) {
            if (events.size() == 1) {
                insertOne(connection, queue, events.getFirst());
            } else if (bulk) {
                connection.setAutoCommit(false);
                insertIntoTable(connection, queue, events);
                connection.commit();
            } else {
                insertSeveral(connection, queue, events);
            }
        }
    }

    private static void insertOne(Connection connection, String queue, Event event) throws SQLException {
        String sql = "SELECT pgq.insert_event(?, 'event', ?, ?, NULL, NULL, NULL)";
        Jdbc.execute(connection, sql, queue, event.text(), event.key());
    }

    private static void insertSeveral(Connection connection, String queue, List<Event> events) throws SQLException {
        String sql = "SELECT count(pgq.insert_event(?, 'event', e.value, e.key, NULL, NULL, NULL))"
                + " FROM unnest(?::text[], ?::text[]) AS e (value, key)";
        Jdbc.execute(connection, sql, queue, Jdbc.texts(events), Jdbc.keys(events));
    }

    /** Inserts into the queue's current table, whose name holds only until the end of the transaction. */
    private static void insertIntoTable(Connection connection, String queue, List<Event> events) throws SQLException {
        String table = Jdbc.rows(connection, "SELECT pgq.current_event_table(?)", row -> row.getString(1), queue)
                .getFirst();
        String sql = "INSERT INTO " + table + " (ev_time, ev_type, ev_data, ev_extra1) SELECT now(), 'event', e.value,"
                + " e.key FROM unnest(?::text[], ?::text[]) AS e (value, key)";
        Jdbc.execute(connection, sql, Jdbc.texts(events), Jdbc.keys(events));
    }

    /** Returns the consumer's next batch; {@code null} if there is none yet. */
    @Nullable
    Long nextBatch(String queue, String consumer) throws SQLException {
        return Jdbc.<@Nullable Long>rows(
                        database, "SELECT pgq.next_batch(?, ?)", row -> row.getObject(1, Long.class), queue, consumer)
                .getFirst();
    }

    /** Returns the events of a batch in insertion order. */
    List<Event> events(long batch) throws SQLException {
        return Jdbc.rows(
                database,
                "SELECT ev_extra1, ev_data FROM pgq.get_batch_events(?) ORDER BY ev_id",
                row -> new Event(row.getString(1), row.getString(2).getBytes(UTF_8), Map.of()),
                batch);
    }

    void finish(long batch) throws SQLException {
        Jdbc.execute(database, "SELECT pgq.finish_batch(?)", batch);
    }
}
