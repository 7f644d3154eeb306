package io.eventsql.runner.limits;

import io.eventsql.Settings;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;

/** How many events a stream has: those published inside transactions get there later. */
final class Arrivals {
    private static final long POLL_NANOS = Duration.ofMillis(5).toNanos();
    /** Longer than the outbox is looked at without a sign. */
    private static final long NO_PROGRESS_NANOS = Duration.ofSeconds(30).toNanos();

    private final LimitsBench bench;
    private final String stream;

    Arrivals(LimitsBench bench, String stream) {
        this.bench = bench;
        this.stream = stream;
    }

    /** How many there are now. */
    long count() throws SQLException {
        String sql = "SELECT sum(next_offset) FROM " + Settings.DEFAULT_SCHEMA + ".partition_head WHERE stream = ?";
        try (Connection connection = bench.dataSource().getConnection();
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
     * @throws StoppedException after a stop signal
     */
    long await(long expected) throws SQLException {
        long count = count();
        long progressed = bench.clock().nanos();
        while (count < expected && bench.clock().nanos() - progressed < NO_PROGRESS_NANOS) {
            bench.checkStopped();
            bench.clock().parkNanos(POLL_NANOS);
            long before = count;
            count = count();
            if (count > before) {
                progressed = bench.clock().nanos();
            }
        }
        return count;
    }
}
