package io.eventsql.runner.limits;

import io.eventsql.Settings;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;

/** Counts the events stored in a stream. Events published inside transactions arrive there with a delay. */
final class StoredEventCounter {
    private static final long POLL_NANOS = Duration.ofMillis(5).toNanos();
    /** Longer than the maximum poll interval of the relay. */
    private static final long NO_PROGRESS_NANOS = Duration.ofSeconds(30).toNanos();

    private final LimitsContext context;
    private final String stream;

    StoredEventCounter(LimitsContext context, String stream) {
        this.context = context;
        this.stream = stream;
    }

    /** Returns the current number of stored events. */
    long count() throws SQLException {
        String sql = "SELECT sum(next_offset) FROM " + Settings.DEFAULT_SCHEMA + ".partition_head WHERE stream = ?";
        try (Connection connection = context.dataSource().getConnection();
                PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, stream);
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                return row.getLong(1);
            }
        }
    }

    /**
     * Waits until the expected number of events is stored or no progress is made for a long time. Returns the number of
     * stored events.
     *
     * @throws RunStoppedException after a stop signal
     */
    long await(long expected) throws SQLException {
        long count = count();
        long progressed = context.clock().nanos();
        while (count < expected && context.clock().nanos() - progressed < NO_PROGRESS_NANOS) {
            context.checkStopped();
            context.clock().parkNanos(POLL_NANOS);
            long before = count;
            count = count();
            if (count > before) {
                progressed = context.clock().nanos();
            }
        }
        return count;
    }
}
