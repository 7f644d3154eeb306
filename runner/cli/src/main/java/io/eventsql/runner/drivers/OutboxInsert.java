package io.eventsql.runner.drivers;

import io.eventsql.Event;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;

/** Inserts the events of a call with one statement in auto-commit mode. Thread-safe. */
final class OutboxInsert {
    private final DataSource database;
    private final String one;
    private final String several;

    OutboxInsert(DataSource database, String table) {
        this.database = database;
        this.one = "INSERT INTO " + table + " (key, value) VALUES (?, ?)";
        this.several = "INSERT INTO " + table
                + " (key, value) SELECT e.key, e.value FROM unnest(?::text[], ?::bytea[])"
                + " WITH ORDINALITY AS e (key, value, number) ORDER BY e.number";
    }

    void insert(List<Event> events) {
        try (Connection connection = database.getConnection()) {
            if (events.size() == 1) {
                insertOne(connection, events.getFirst());
            } else {
                insertSeveral(connection, events);
            }
        } catch (SQLException e) {
            throw new IllegalStateException("The insert failed: " + e.getMessage(), e);
        }
    }

    private void insertOne(Connection connection, Event event) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(one)) {
            statement.setString(1, event.key());
            statement.setBytes(2, event.value());
            statement.executeUpdate();
        }
    }

    private void insertSeveral(Connection connection, List<Event> events) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(several)) {
            statement.setArray(
                    1,
                    connection.createArrayOf(
                            "text", events.stream().map(Event::key).toArray()));
            statement.setArray(
                    2,
                    connection.createArrayOf(
                            "bytea", events.stream().map(Event::value).toArray(byte[][]::new)));
            statement.executeUpdate();
        }
    }
}
