package io.eventsql.runner.limits;

import io.eventsql.Settings;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;

/** How many events a stream has: those published inside transactions get there later. */
final class StoredEventCounter {
    private static final long POLL_NANOS = Duration.ofMillis(5).toNanos();
    /** Longer than the outbox is looked at without a sign. */
    private static final long NO_PROGRESS_NANOS = Duration.ofSeconds(30).toNanos();

    private final LimitsContext context;
    private final String stream;

    StoredEventCounter(LimitsContext context, String stream) {
        this.context = context;
        this.stream = stream;
    }

    /** How many there are now. */
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
     * How many there are once there are those that are expected, or when nothing more comes for long.
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
