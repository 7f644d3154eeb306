package io.eventsql.runner.drivers.pgq;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.Event;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import javax.sql.DataSource;

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
        String sql = "SELECT 'PgQ ' || pgq.version() || ' on PostgreSQL ' || current_setting('server_version')";
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql);
                ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getString(1);
        }
    }

    /** Creates a queue in which each {@link #tick} ends a batch if there are new events. */
    void createQueue(String queue) throws SQLException {
        call("SELECT pgq.create_queue(?)", queue);
        call("SELECT pgq.set_queue_config(?, 'ticker_max_count', '1')", queue);
    }

    void tick(String queue) throws SQLException {
        call("SELECT pgq.ticker(?)", queue);
    }

    /** Registers a consumer at the queue's first tick, so that it receives all events. */
    void register(String queue, String consumer) throws SQLException {
        call(
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
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, queue);
            statement.setString(2, event.text());
            statement.setString(3, event.key());
            statement.execute();
        }
    }

    private static void insertSeveral(Connection connection, String queue, List<Event> events) throws SQLException {
        String sql = "SELECT count(pgq.insert_event(?, 'event', e.value, e.key, NULL, NULL, NULL))"
                + " FROM unnest(?::text[], ?::text[]) AS e (value, key)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, queue);
            setEvents(statement, 2, events);
            statement.execute();
        }
    }

    /** Inserts into the queue's current table, whose name holds only until the end of the transaction. */
    private static void insertIntoTable(Connection connection, String queue, List<Event> events) throws SQLException {
        String table;
        try (PreparedStatement statement = connection.prepareStatement("SELECT pgq.current_event_table(?)")) {
            statement.setString(1, queue);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                table = row.getString(1);
            }
        }
        String sql = "INSERT INTO " + table + " (ev_time, ev_type, ev_data, ev_extra1) SELECT now(), 'event', e.value,"
                + " e.key FROM unnest(?::text[], ?::text[]) AS e (value, key)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            setEvents(statement, 1, events);
            statement.execute();
        }
    }

    private static void setEvents(PreparedStatement statement, int first, List<Event> events) throws SQLException {
        Connection connection = statement.getConnection();
        Object[] values = events.stream().map(Event::text).toArray();
        Object[] keys = events.stream().map(Event::key).toArray();
        statement.setArray(first, connection.createArrayOf("text", values));
        statement.setArray(first + 1, connection.createArrayOf("text", keys));
    }

    /** Returns the consumer's next batch; empty if there is none yet. */
    OptionalLong nextBatch(String queue, String consumer) throws SQLException {
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement("SELECT pgq.next_batch(?, ?)")) {
            statement.setString(1, queue);
            statement.setString(2, consumer);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                long batch = row.getLong(1);
                return row.wasNull() ? OptionalLong.empty() : OptionalLong.of(batch);
            }
        }
    }

    /** Returns the events of a batch in insertion order. */
    List<Event> events(long batch) throws SQLException {
        List<Event> events = new ArrayList<>();
        String sql = "SELECT ev_extra1, ev_data FROM pgq.get_batch_events(?) ORDER BY ev_id";
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setLong(1, batch);
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    events.add(new Event(row.getString(1), row.getString(2).getBytes(UTF_8), Map.of()));
                }
            }
        }
        return events;
    }

    void finish(long batch) throws SQLException {
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement("SELECT pgq.finish_batch(?)")) {
            statement.setLong(1, batch);
            statement.execute();
        }
    }

    private void call(String sql, String... parameters) throws SQLException {
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setString(i + 1, parameters[i]);
            }
            statement.execute();
        }
    }
}
