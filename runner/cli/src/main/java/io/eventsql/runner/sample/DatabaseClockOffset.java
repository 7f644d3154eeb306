package io.eventsql.runner.sample;

import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.load.LoadClock;
import java.sql.Connection;
import java.sql.SQLException;

/** Measures the offset of a database's clock with the fastest of several queries. */
public final class DatabaseClockOffset {
    private static final int QUESTIONS = 9;
    private static final String SQL = "SELECT extract(epoch FROM clock_timestamp()) * 1000000";

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
        for (int question = 0; question < QUESTIONS; question++) {
            long asked = clock.epochMicros();
            double databaseMicros =
                    Jdbc.rows(connection, SQL, row -> row.getDouble(1)).getFirst();
            long roundTrip = clock.epochMicros() - asked;
            if (roundTrip < quickest) {
                quickest = roundTrip;
                offset = databaseMicros - (asked + roundTrip / 2.0);
            }
        }
        return Math.round(offset) / 1_000.0;
    }
}
