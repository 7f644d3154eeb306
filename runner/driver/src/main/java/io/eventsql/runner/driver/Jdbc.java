package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * Single statements. A parameter may be a number, a string, bytes, or an array that becomes one of PostgreSQL's: of
 * strings, of bytes, or of {@link Long}. With a data source, each statement takes a connection of its own.
 */
public final class Jdbc {
    private Jdbc() {}

    /** Reads a row. */
    @FunctionalInterface
    public interface RowMapper<T extends @Nullable Object> {
        T map(ResultSet row) throws SQLException;
    }

    /** Executes a statement. Returns the number of changed rows; 0 for a query, whose rows are dropped. */
    public static int execute(Connection connection, String sql, @Nullable Object... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            set(statement, parameters);
            return statement.execute() ? 0 : statement.getUpdateCount();
        }
    }

    /** See {@link #execute(Connection, String, Object...)}. */
    public static int execute(DataSource database, String sql, @Nullable Object... parameters) throws SQLException {
        try (Connection connection = database.getConnection()) {
            return execute(connection, sql, parameters);
        }
    }

    /** Returns the rows of a query. */
    public static <T extends @Nullable Object> List<T> rows(
            Connection connection, String sql, RowMapper<T> mapper, @Nullable Object... parameters)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            set(statement, parameters);
            List<T> rows = new ArrayList<>();
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    rows.add(mapper.map(row));
                }
            }
            return rows;
        }
    }

    /** See {@link #rows(Connection, String, RowMapper, Object...)}. */
    public static <T extends @Nullable Object> List<T> rows(
            DataSource database, String sql, RowMapper<T> mapper, @Nullable Object... parameters) throws SQLException {
        try (Connection connection = database.getConnection()) {
            return rows(connection, sql, mapper, parameters);
        }
    }

    /** Returns the number in the only row and column of a query; 0 for a null. */
    public static long number(DataSource database, String sql, @Nullable Object... parameters) throws SQLException {
        return rows(database, sql, row -> row.getLong(1), parameters).getFirst();
    }

    /** Returns the text in the only row and column of a query. */
    public static String text(DataSource database, String sql, @Nullable Object... parameters) throws SQLException {
        return rows(database, sql, row -> row.getString(1), parameters).getFirst();
    }

    /** Returns the keys of events, as a parameter. */
    public static @Nullable String[] keys(List<Event> events) {
        return events.stream().map(Event::key).toArray(String[]::new);
    }

    /** Returns the values of events, as a parameter. */
    public static byte[][] values(List<Event> events) {
        return events.stream().map(Event::value).toArray(byte[][]::new);
    }

    /** Returns the values of events as texts, as a parameter. */
    public static String[] texts(List<Event> events) {
        return events.stream().map(Event::text).toArray(String[]::new);
    }

    private static void set(PreparedStatement statement, @Nullable Object... parameters) throws SQLException {
        Connection connection = statement.getConnection();
        for (int i = 0; i < parameters.length; i++) {
            Object value = parameters[i];
            statement.setObject(
                    i + 1,
                    switch (value) {
                        case String[] texts -> connection.createArrayOf("text", texts);
                        case byte[][] values -> connection.createArrayOf("bytea", values);
                        case Long[] numbers -> connection.createArrayOf("bigint", numbers);
                        case null, default -> value;
                    });
        }
    }
}
