package io.eventsql.runner.sample;

import io.eventsql.runner.load.LoadClock;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** Measures the offset of a database's clock with the fastest of several queries. */
public final class DatabaseClockOffset {
    private static final int QUESTIONS = 9;

    private DatabaseClockOffset() {}

    /**
     * Measures the offset.
     *
     * @return how far the database's clock is ahead, in milliseconds; negative if it is behind. The error is at most
     *     half of the fastest round trip.
     */
    public static double millis(Connection connection, LoadClock clock) throws SQLException {
        long quickest = Long.MAX_VALUE;
        double offset = 0;
        try (PreparedStatement statement =
                connection.prepareStatement("SELECT extract(epoch FROM clock_timestamp()) * 1000000")) {
            for (int question = 0; question < QUESTIONS; question++) {
                long asked = clock.epochMicros();
                double databaseMicros = queryMicros(statement);
                long roundTrip = clock.epochMicros() - asked;
                if (roundTrip < quickest) {
                    quickest = roundTrip;
                    offset = databaseMicros - (asked + roundTrip / 2.0);
                }
            }
        }
        return Math.round(offset) / 1_000.0;
    }

    private static double queryMicros(PreparedStatement statement) throws SQLException {
        try (ResultSet row = statement.executeQuery()) {
            row.next();
            return row.getDouble(1);
        }
    }
}
