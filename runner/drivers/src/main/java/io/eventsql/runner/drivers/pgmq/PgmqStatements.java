package io.eventsql.runner.drivers.pgmq;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.eventsql.Event;
import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.driver.PollingConsumer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
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

    private record Message(long id, Event event) {}

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
        return Jdbc.text(database, "SHOW server_version");
    }

    void create(String queue) throws SQLException {
        Jdbc.execute(database, "SELECT pgmq.create(?)", queue);
    }

    void purge(String queue) throws SQLException {
        Jdbc.execute(database, "SELECT pgmq.purge_queue(?)", queue);
    }

    void drop(String queue) throws SQLException {
        Jdbc.execute(database, "SELECT pgmq.drop_queue(?)", queue);
    }

    /** Sends the events of a call. */
    void send(String queue, List<Event> events) throws SQLException {
        if (events.size() == 1) {
            Event event = events.getFirst();
            String sql = "SELECT pgmq.send(?, to_jsonb(?::text), jsonb_build_object('key', ?::text))";
            Jdbc.execute(database, sql, queue, event.text(), event.key());
        } else {
            String sql = "SELECT count(*) FROM pgmq.send_batch(?,"
                    + " ARRAY(SELECT to_jsonb(value) FROM unnest(?::text[]) WITH ORDINALITY AS e (value, n) ORDER BY n),"
                    + " ARRAY(SELECT jsonb_build_object('key', key) FROM unnest(?::text[]) WITH ORDINALITY AS e (key, n)"
                    + " ORDER BY n))";
            Jdbc.execute(database, sql, queue, Jdbc.texts(events), Jdbc.keys(events));
        }
    }

    /** Starts the consumer of a queue, which deletes each page after its delivery. */
    PollingConsumer consume(
            String queue, PgmqSettings settings, Consumer<List<Event>> listener, Consumer<Throwable> failed) {
        return PollingConsumer.start(
                "pgmq-" + queue,
                () -> {
                    List<Message> page = read(queue, settings.pageEvents(), settings.pollMs());
                    if (!page.isEmpty()) {
                        listener.accept(page.stream().map(Message::event).toList());
                        delete(queue, page);
                    }
                    return 0;
                },
                failed);
    }

    /** Returns the next events, in the order of their ids; none if there are none within a second. */
    private List<Message> read(String queue, int eventsMax, int pollMs) throws SQLException {
        String sql = "SELECT msg_id, message #>> '{}', headers ->> 'key' FROM pgmq.read_with_poll(?, ?, ?, ?, ?)"
                + " ORDER BY msg_id";
        return Jdbc.rows(
                database,
                sql,
                row -> new Message(
                        row.getLong(1),
                        new Event(row.getString(3), row.getString(2).getBytes(UTF_8), Map.of())),
                queue,
                VISIBILITY_SECONDS,
                eventsMax,
                READ_SECONDS_MAX,
                pollMs);
    }

    private void delete(String queue, List<Message> page) throws SQLException {
        Long[] ids = page.stream().map(Message::id).toArray(Long[]::new);
        Jdbc.execute(database, "SELECT count(*) FROM pgmq.delete(?, ?::bigint[])", queue, ids);
    }
}
