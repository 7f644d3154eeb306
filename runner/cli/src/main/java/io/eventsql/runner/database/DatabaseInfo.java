package io.eventsql.runner.database;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.sample.DatabaseClockOffset;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/**
 * What a database says of itself.
 *
 * @param name {@code shard0} and so on, in the order of the addresses
 * @param version such as {@code 18.6}
 * @param fsync {@code on} or {@code off}
 * @param synchronousCommit as PostgreSQL shows it
 * @param synchronousStandbyNames empty: none is waited for
 * @param clockOffsetMs how far its clock is ahead of the runner's, milliseconds
 */
public record DatabaseInfo(
        String name,
        String version,
        String fsync,
        String synchronousCommit,
        String synchronousStandbyNames,
        double clockOffsetMs) {

    /** Asks the database over a connection of its own. */
    public static DatabaseInfo read(int number, DatabaseAddress address, LoadClock clock) throws SQLException {
        try (Connection connection =
                DriverManager.getConnection(address.jdbcUrl(), address.user(), address.password())) {
            return new DatabaseInfo(
                    "shard" + number,
                    show(connection, "server_version").split(" ", -1)[0],
                    show(connection, "fsync"),
                    show(connection, "synchronous_commit"),
                    show(connection, "synchronous_standby_names"),
                    DatabaseClockOffset.millis(connection, clock));
        }
    }

    private static String show(Connection connection, String setting) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT current_setting(?)")) {
            statement.setString(1, setting);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getString(1);
            }
        }
    }
}
