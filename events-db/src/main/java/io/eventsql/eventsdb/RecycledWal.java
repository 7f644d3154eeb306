package io.eventsql.eventsdb;

import java.sql.SQLException;
import javax.sql.DataSource;

/**
 * Preallocates WAL files in a new server, as in a server in use, whose checkpoints recycle old files. Without recycled
 * files, a commit that needs a new one first writes and syncs 16 MB of zeros.
 */
final class RecycledWal {
    static final int WAL_MAX_MEGABYTES = 2_000;

    private static final String WRITE = "SELECT count(pg_logical_emit_message(false, 'filler', repeat('.', 1 << 20)))"
            + " FROM generate_series(1, ?)";

    private RecycledWal() {}

    /**
     * Writes the given amount of WAL and a checkpoint, which recycles it. The server keeps the files if its
     * min_wal_size is large enough.
     */
    static void create(DataSource admin, int megabytes) {
        try (var connection = admin.getConnection();
                var write = connection.prepareStatement(WRITE);
                var checkpoint = connection.prepareStatement("CHECKPOINT")) {
            write.setInt(1, megabytes);
            write.execute();
            checkpoint.execute();
        } catch (SQLException e) {
            throw new IllegalStateException("cannot preallocate WAL files", e);
        }
    }
}
