package io.eventsql.eventsdb;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.stream.Stream;

/** Runs {@code init.sql} through JDBC like psql. */
final class InitSql {

    /** The database created by {@code init.sql}; the role has the same name. */
    static final String DATABASE = "eventsql";

    static final String USERNAME = "eventsql";

    private InitSql() {}

    /**
     * @param connection a superuser connection in auto-commit mode, because CREATE DATABASE cannot run inside a
     *     transaction
     */
    static void run(Connection connection, String password) throws SQLException {
        try (var statement = connection.createStatement()) {
            for (String sql : statements(Resources.text("init.sql"), password)) {
                statement.execute(sql);
            }
        }
    }

    static List<String> statements(String text, String password) {
        String literal = "'" + password.replace("'", "''") + "'";
        String sql = text.replaceAll("(?m)^\\s*--.*$", "").replace(":'eventsql_password'", literal);
        return Stream.of(sql.split(";[ \\t]*(\\n|$)", -1))
                .map(String::strip)
                .filter(statement -> !statement.isEmpty())
                .toList();
    }
}
