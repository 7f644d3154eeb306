package io.eventsql.runner.drivers.pgmq;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.Event;
import io.eventsql.runner.driver.PollingConsumer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import javax.sql.DataSource;

/**
 * Calls of pgmq's functions, each in its own transaction. Its messages are JSON: values are stored as JSON strings, keys as
 * headers. Thread-safe.
 */
final class PgmqStatements {
    /** How long an event that was read is not read again: longer than any pause of a consumer. */
    private static final int VISIBILITY_SECONDS = 60;

    private static final int READ_SECONDS_MAX = 1;

    private final DataSource database;

    /** A page and how to delete it. */
    private record Page(List<Event> events, Long[] ids) {}

    PgmqStatements(DataSource database) {
        this.database = database;
    }

    /** Creates pgmq's schema unless it exists. */
    void install(Path sqlFile) throws SQLException, IOException {
        try (Connection connection = database.getConnection();
                Statement statement = connection.createStatement()) {
            try (ResultSet row = statement.executeQuery("SELECT to_regnamespace('pgmq') IS NULL")) {
                row.next();
                if (!row.getBoolean(1)) {
                    return;
                }
            }
            statement.execute(Files.readString(sqlFile));
        }
    }

    String serverVersion() throws SQLException {
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement("SHOW server_version");
                ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getString(1);
        }
    }

    void create(String queue) throws SQLException {
        call("SELECT pgmq.create(?)", queue);
    }

    void purge(String queue) throws SQLException {
        call("SELECT pgmq.purge_queue(?)", queue);
    }

    void drop(String queue) throws SQLException {
        call("SELECT pgmq.drop_queue(?)", queue);
    }

    /** Sends the events of a call. */
    void send(String queue, List<Event> events) throws SQLException {
        try (Connection connection = database.getConnection()) {
            if (events.size() == 1) {
                sendOne(connection, queue, events.getFirst());
            } else {
                sendSeveral(connection, queue, events);
            }
        }
    }

    private static void sendOne(Connection connection, String queue, Event event) throws SQLException {
        String sql = "SELECT pgmq.send(?, to_jsonb(?::text), jsonb_build_object('key', ?::text))";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, queue);
            statement.setString(2, event.text());
            statement.setString(3, event.key());
            statement.execute();
        }
    }

    private static void sendSeveral(Connection connection, String queue, List<Event> events) throws SQLException {
        String sql = "SELECT count(*) FROM pgmq.send_batch(?,"
                + " ARRAY(SELECT to_jsonb(value) FROM unnest(?::text[]) WITH ORDINALITY AS e (value, n) ORDER BY n),"
                + " ARRAY(SELECT jsonb_build_object('key', key) FROM unnest(?::text[]) WITH ORDINALITY AS e (key, n)"
                + " ORDER BY n))";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, queue);
            statement.setArray(
                    2,
                    connection.createArrayOf(
                            "text", events.stream().map(Event::text).toArray()));
            statement.setArray(
                    3,
                    connection.createArrayOf(
                            "text", events.stream().map(Event::key).toArray()));
            statement.execute();
        }
    }

    /** Starts the consumer of a queue, which deletes each page after its delivery. */
    PollingConsumer consume(
            String queue, PgmqSettings settings, Consumer<List<Event>> listener, Consumer<Throwable> failed) {
        return PollingConsumer.start(
                "pgmq-" + queue,
                () -> {
                    Page page = read(queue, settings.pageEvents(), settings.pollMs());
                    if (!page.events.isEmpty()) {
                        listener.accept(page.events);
                        delete(queue, page.ids);
                    }
                    return 0;
                },
                failed);
    }

    /** Returns the next events, in the order of their ids; none if there are none within a second. */
    private Page read(String queue, int eventsMax, int pollMs) throws SQLException {
        String sql = "SELECT msg_id, message #>> '{}', headers ->> 'key' FROM pgmq.read_with_poll(?, ?, ?, ?, ?)"
                + " ORDER BY msg_id";
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, queue);
            statement.setInt(2, VISIBILITY_SECONDS);
            statement.setInt(3, eventsMax);
            statement.setInt(4, READ_SECONDS_MAX);
            statement.setInt(5, pollMs);
            List<Event> events = new ArrayList<>();
            List<Long> ids = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    ids.add(row.getLong(1));
                    events.add(new Event(row.getString(3), row.getString(2).getBytes(UTF_8), Map.of()));
                }
            }
            return new Page(events, ids.toArray(Long[]::new));
        }
    }

    private void delete(String queue, Long[] ids) throws SQLException {
        try (Connection connection = database.getConnection();
                PreparedStatement statement =
                        connection.prepareStatement("SELECT count(*) FROM pgmq.delete(?, ?::bigint[])")) {
            statement.setString(1, queue);
            statement.setArray(2, connection.createArrayOf("bigint", ids));
            statement.execute();
        }
    }

    private void call(String sql, String queue) throws SQLException {
        try (Connection connection = database.getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, queue);
            statement.execute();
        }
    }
}
