package io.eventsql.runner.database;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.sample.DatabaseClockOffset;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

/**
 * Version and settings of a database.
 *
 * @param name the name, {@code shard0} and so on in the order of the addresses
 * @param version the server version, such as {@code 18.6}
 * @param fsync {@code on} or {@code off}
 * @param synchronousCommit the value of {@code synchronous_commit}
 * @param synchronousStandbyNames the value of {@code synchronous_standby_names}; empty if commits wait for no standby
 * @param clockOffsetMs how far its clock is ahead of the runner's, in milliseconds
 */
public record DatabaseInfo(
        String name,
        String version,
        String fsync,
        String synchronousCommit,
        String synchronousStandbyNames,
        double clockOffsetMs) {

    /** Queries the database over a new connection. */
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

    /** Returns the value of a server setting. */
    static String show(Connection connection, String setting) throws SQLException {
        return Jdbc.rows(connection, "SELECT current_setting(?)", row -> row.getString(1), setting)
                .getFirst();
    }
}
