package io.eventsql.runner.limits;

import io.eventsql.runner.result.Figure;
import io.eventsql.runner.sample.ProcessTree;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;

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
record Cost(
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

    /** A ratio of two counters. */
    private record Ratio(String name, ToDoubleFunction<Cost> of, ToDoubleFunction<Cost> value) {}

    private static final List<Ratio> RATIOS = List.of(
            new Ratio("events_per_second", Cost::seconds, Cost::publishedEvents),
            new Ratio("handled_per_event", Cost::publishedEvents, Cost::handledEvents),
            new Ratio("server_cores", Cost::seconds, Cost::serverCpuSeconds),
            new Ratio("client_cores", Cost::seconds, Cost::clientCpuSeconds),
            new Ratio("server_us_per_event", Cost::publishedEvents, cost -> cost.serverCpuSeconds * 1e6),
            new Ratio("client_us_per_event", Cost::publishedEvents, cost -> cost.clientCpuSeconds * 1e6),
            new Ratio("transactions_per_second", Cost::seconds, Cost::transactions),
            new Ratio("transactions_per_event", Cost::publishedEvents, Cost::transactions),
            new Ratio("blocks_hit_per_event", Cost::publishedEvents, Cost::blocksHit),
            new Ratio("wal_bytes_per_event", Cost::publishedEvents, Cost::walBytes),
            new Ratio("wal_per_published_byte", Cost::publishedBytes, Cost::walBytes),
            new Ratio("same_without_page_images", Cost::publishedBytes, Cost::walBytesWithoutImages),
            new Ratio("page_images_per_1000_events", Cost::publishedEvents, cost -> cost.walImages * 1e3),
            new Ratio("checkpoints_per_interval", cost -> 1, Cost::checkpoints));

    /** Reads the counters. */
    static Cost read(LimitsContext context, StreamLoad load, Connection connection, ProcessTree processes)
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
                    load.consumedEvents(),
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

    /** Returns the figures of several rounds by name; empty without rounds. */
    static Map<String, Figure> figures(List<Cost> rounds) {
        Map<String, Figure> figures = new LinkedHashMap<>();
        if (!rounds.isEmpty()) {
            RATIOS.forEach(ratio ->
                    figures.put(ratio.name, Figure.ofRatios(of(rounds, ratio.of), of(rounds, ratio.value), "")));
        }
        return figures;
    }

    private static List<Double> of(List<Cost> rounds, ToDoubleFunction<Cost> counter) {
        return rounds.stream().map(cost -> counter.applyAsDouble(cost)).toList();
    }
}
