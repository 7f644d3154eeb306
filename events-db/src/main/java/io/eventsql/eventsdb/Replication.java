package io.eventsql.eventsdb;

import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/** Configures and monitors replication on the primary. */
final class Replication {
    private static final Duration DEADLINE = Duration.ofMinutes(1);
    private static final Duration POLL_INTERVAL = Duration.ofMillis(50);

    private Replication() {}

    /** Creates a replication slot for each standby, so that the primary retains the WAL that it still needs. */
    static void createSlots(DataSource admin, List<String> names) {
        String sql = "SELECT pg_create_physical_replication_slot(?)"
                + " WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = ?)";
        try (var connection = admin.getConnection();
                var statement = connection.prepareStatement(sql)) {
            for (String name : names) {
                statement.setString(1, name);
                statement.setString(2, name);
                statement.execute();
            }
        } catch (SQLException e) {
            throw new IllegalStateException("cannot create the replication slots", e);
        }
    }

    /**
     * Waits until each standby streams with the expected sync state.
     *
     * @throws IllegalStateException after a minute
     */
    static void awaitStreaming(DataSource admin, StandbyMode standbys) {
        String sql = "SELECT count(*) FROM pg_stat_replication WHERE application_name = ANY (?)"
                + " AND state = 'streaming' AND sync_state = ?";
        long deadline = System.nanoTime() + DEADLINE.toNanos();
        try (var connection = admin.getConnection();
                var statement = connection.prepareStatement(sql)) {
            statement.setArray(
                    1, connection.createArrayOf("text", standbys.names().toArray()));
            statement.setString(2, standbys.syncState());
            while (true) {
                try (var row = statement.executeQuery()) {
                    row.next();
                    if (row.getInt(1) == standbys.names().size()) {
                        return;
                    }
                }
                if (System.nanoTime() - deadline > 0) {
                    throw new IllegalStateException("not all standbys stream after " + DEADLINE);
                }
                TimeUnit.NANOSECONDS.sleep(POLL_INTERVAL.toNanos());
            }
        } catch (SQLException e) {
            throw new IllegalStateException("cannot read the replication status", e);
        } catch (InterruptedException e) {
            throw Postmaster.interrupted(e);
        }
    }
}
