package io.eventsql.runner.limits;

import io.eventsql.runner.sample.ProcessTree;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * Counters that only grow, or what they have counted in an interval. PostgreSQL's own lag behind by up to a second,
 * because each backend reports its activity once per second.
 *
 * @param seconds the time
 * @param publishedEvents the acknowledged events
 * @param publishedBytes the bytes of their keys, values and headers
 * @param handledEvents the events handled, by all consumers
 * @param serverCpuSeconds the CPU time of all processes of the server, ended ones included
 * @param clientCpuSeconds the CPU time of this process: publisher, members, and their JVM
 * @param transactions the ended transactions of the database
 * @param blocksHit the blocks of the database found in shared buffers
 * @param walBytes the bytes of all WAL records, with page images
 * @param walImages the page images in them, of up to 8,192 bytes each
 * @param checkpoints the started checkpoints
 */
public record Cost(
        double seconds,
        long publishedEvents,
        long publishedBytes,
        long handledEvents,
        double serverCpuSeconds,
        double clientCpuSeconds,
        long transactions,
        long blocksHit,
        long walBytes,
        long walImages,
        long checkpoints) {

    /** The first version with {@code pg_stat_checkpointer}. */
    private static final int VERSION_WITH_CHECKPOINTER = 17;

    private static final int PAGE_BYTES = 8_192;

    /** Reads the counters. */
    static Cost read(LimitsContext context, ConsumedLoad load, Connection connection, ProcessTree processes)
            throws SQLException {
        String checkpoints = connection.getMetaData().getDatabaseMajorVersion() >= VERSION_WITH_CHECKPOINTER
                ? "num_timed + num_requested FROM pg_stat_checkpointer"
                : "checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter";
        String sql = "SELECT pg_backend_pid(), d.xact_commit + d.xact_rollback, d.blks_hit, w.wal_bytes, w.wal_fpi,"
                + " (SELECT " + checkpoints + ")"
                + " FROM pg_stat_database d, pg_stat_wal w WHERE d.datname = current_database()";
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            row.next();
            long now = context.clock().nanos();
            long published = load.publishedEvents();
            return new Cost(
                    now / 1e9,
                    published,
                    Math.round(published * context.meanEventBytes()),
                    load.handledEvents(),
                    processes.totalCpuSeconds(processes.parent(row.getLong(1)), now),
                    ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class)
                                    .getProcessCpuTime()
                            / 1e9,
                    row.getLong(2),
                    row.getLong(3),
                    row.getLong(4),
                    row.getLong(5),
                    row.getLong(6));
        } catch (IOException e) {
            throw new UncheckedIOException("The database must run on this machine, outside of a container", e);
        }
    }

    /** Returns the bytes of WAL without its page images, if each of these is as large as a page: at least the bytes of the others. */
    long walBytesWithoutImages() {
        return walBytes - walImages * PAGE_BYTES;
    }

    /** Returns what was counted since an earlier time. */
    Cost since(Cost earlier) {
        return new Cost(
                seconds - earlier.seconds,
                publishedEvents - earlier.publishedEvents,
                publishedBytes - earlier.publishedBytes,
                handledEvents - earlier.handledEvents,
                serverCpuSeconds - earlier.serverCpuSeconds,
                clientCpuSeconds - earlier.clientCpuSeconds,
                transactions - earlier.transactions,
                blocksHit - earlier.blocksHit,
                walBytes - earlier.walBytes,
                walImages - earlier.walImages,
                checkpoints - earlier.checkpoints);
    }
}
