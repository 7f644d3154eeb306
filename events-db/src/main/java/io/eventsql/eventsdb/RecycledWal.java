package io.eventsql.eventsdb;

import java.sql.SQLException;
import javax.sql.DataSource;

/**
 * Gives a new server WAL files for its next megabytes, as one that has been in use has them: its checkpoints keep old
 * files for later. A new server has none, and a commit that needs one first fills 16 MB with zeros and syncs them.
 */
final class RecycledWal {
    static final int WAL_MAX_MEGABYTES = 2_000;

    private static final String WRITE = "SELECT count(pg_logical_emit_message(false, 'filler', repeat('.', 1 << 20)))"
            + " FROM generate_series(1, ?)";

    private RecycledWal() {}

    /** Writes so much WAL, and a checkpoint makes it old. The server keeps it if its min_wal_size is as large. */
    static void create(DataSource admin, int megabytes) {
        try (var connection = admin.getConnection();
                var write = connection.prepareStatement(WRITE);
                var checkpoint = connection.prepareStatement("CHECKPOINT")) {
            write.setInt(1, megabytes);
            write.execute();
            checkpoint.execute();
        } catch (SQLException e) {
            throw new IllegalStateException("the WAL files could not be made", e);
        }
    }
}
