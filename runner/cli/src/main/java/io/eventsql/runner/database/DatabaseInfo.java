package io.eventsql.runner.database;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.load.LoadClock;
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
    private static final int CLOCK_QUESTIONS = 9;
    private static final String CLOCK = "SELECT extract(epoch FROM clock_timestamp()) * 1000000";

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
                    clockOffsetMs(connection, clock));
        }
    }

    /** Returns the offset by the fastest of several queries. The error is at most half of its round trip. */
    private static double clockOffsetMs(Connection connection, LoadClock clock) throws SQLException {
        long quickest = Long.MAX_VALUE;
        double offset = 0;
        for (int question = 0; question < CLOCK_QUESTIONS; question++) {
            long asked = clock.epochMicros();
            double databaseMicros =
                    Jdbc.rows(connection, CLOCK, row -> row.getDouble(1)).getFirst();
            long roundTrip = clock.epochMicros() - asked;
            if (roundTrip < quickest) {
                quickest = roundTrip;
                offset = databaseMicros - (asked + roundTrip / 2.0);
            }
        }
        return Math.round(offset) / 1_000.0;
    }

    /** Returns the value of a server setting. */
    static String show(Connection connection, String setting) throws SQLException {
        return Jdbc.rows(connection, "SELECT current_setting(?)", row -> row.getString(1), setting)
                .getFirst();
    }
}
