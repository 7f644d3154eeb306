package io.eventsql.internal.consume;

import io.eventsql.ConsumerOverview;
import io.eventsql.ConsumerStatus;
import io.eventsql.ConsumerSummary;
import io.eventsql.EventSqlException;
import io.eventsql.PartitionState;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.ConsumerStatusFunctions.PartitionOfConsumer;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the state of all consumers, wherever their members run. Of all processes that report it, such as for meters, one at a
 * time per database does: it has a lease, which each of its reports renews. Thread-safe.
 */
public final class ConsumerStatusReader {
    private static final Logger LOG = LoggerFactory.getLogger(ConsumerStatusReader.class);
    private static final Duration END_REPORT_TIMEOUT = Duration.ofSeconds(1);

    private final Shards shards;
    /** Identifies this instance among those that report. */
    private final UUID reporter = UUID.randomUUID();

    private final Set<Shard> reported = ConcurrentHashMap.newKeySet();
    private volatile boolean closed;

    public ConsumerStatusReader(Shards shards) {
        this.shards = shards;
    }

    /** See {@link io.eventsql.EventSql#consumers()}. */
    public ConsumerOverview overview() {
        Map<String, Map<String, Collected>> streams = new TreeMap<>();
        Map<String, String> unavailable = new HashMap<>();
        for (Shard shard : shards.all()) {
            try {
                for (PartitionOfConsumer row : read(shard)) {
                    streams.computeIfAbsent(row.stream(), stream -> new TreeMap<>())
                            .computeIfAbsent(row.consumer(), consumer -> new Collected())
                            .add(row);
                }
            } catch (SQLException e) {
                unavailable.put(shard.name(), String.valueOf(e.getMessage()));
            }
        }
        shards.lacking().forEach(shard -> unavailable.put(shard, "its database is " + Shards.NOT_GIVEN));
        List<ConsumerStatus> consumers = new ArrayList<>();
        streams.forEach((stream, ofStream) ->
                ofStream.forEach((consumer, collected) -> consumers.add(collected.status(stream, consumer))));
        return new ConsumerOverview(consumers, unavailable);
    }

    private static List<PartitionOfConsumer> read(Shard shard) throws SQLException {
        return shard.require()
                .read(c ->
                        shard.tables().consumerStatus().partitions(c, shard.number(), ConsumerSummary.CONSUMERS_MAX));
    }

    /** The partitions of one consumer, from all shards. */
    private static final class Collected {
        private final Set<String> members = new TreeSet<>();
        private final List<PartitionState> partitions = new ArrayList<>();
        private @Nullable String lastError;
        private @Nullable Instant lastErrorAt;

        void add(PartitionOfConsumer row) {
            members.addAll(row.members());
            partitions.add(row.state());
            addError(row.state().error(), row.stateSince());
            addError(row.parkedError(), row.parkedAt());
        }

        private void addError(@Nullable String error, @Nullable Instant at) {
            if (error != null && at != null && (lastErrorAt == null || at.isAfter(lastErrorAt))) {
                lastError = error;
                lastErrorAt = at;
            }
        }

        ConsumerStatus status(String stream, String consumer) {
            return new ConsumerStatus(stream, consumer, List.copyOf(members), partitions, lastError, lastErrorAt);
        }
    }

    /** See {@link io.eventsql.EventSql#consumers(int, int)}. */
    public List<ConsumerSummary> summaries(int number, int max) {
        Shard shard = shards.get(number);
        try {
            return shard.require().read(c -> shard.tables().consumerStatus().summaries(c, number, max));
        } catch (SQLException e) {
            throw new EventSqlException("Reading the consumers of " + shard + " failed: " + e.getMessage(), e);
        }
    }

    /** See {@link io.eventsql.EventSql#reportConsumers}. */
    public Optional<List<ConsumerSummary>> report(int number, int max, Duration lease) {
        Shard shard = shards.get(number);
        if (closed) {
            return Optional.empty();
        }
        try {
            reported.add(shard); // also if the reply is lost
            Optional<List<ConsumerSummary>> summaries =
                    shard.require().call(c -> shard.tables().consumerStatus().report(c, reporter, lease, number, max));
            if (summaries.isEmpty()) {
                reported.remove(shard);
            }
            return summaries;
        } catch (SQLException e) {
            throw new EventSqlException("Reporting the consumers of " + shard + " failed: " + e.getMessage(), e);
        }
    }

    /**
     * Lets other processes report at once. A shard that does not respond in time is left alone: the lease expires.
     *
     * @param deadlineNanos as {@link System#nanoTime()}; waits for 1 s at most
     */
    public void close(long deadlineNanos) throws InterruptedException {
        closed = true;
        List<Thread> threads = reported.stream()
                .map(shard -> Thread.ofPlatform()
                        .daemon()
                        .name("eventsql-end-report-" + shard.name())
                        .start(() -> endReport(shard)))
                .toList();
        long end = Math.min(deadlineNanos, System.nanoTime() + END_REPORT_TIMEOUT.toNanos());
        for (Thread thread : threads) {
            thread.join(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
        }
    }

    private void endReport(Shard shard) {
        try {
            shard.require().withNetworkTimeout(END_REPORT_TIMEOUT).call(c -> {
                shard.tables().consumerStatus().endReport(c, reporter);
                return shard;
            });
        } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
            LOG.debug("The lease for reporting the consumers of {} was not ended; it expires", shard, e);
        }
    }
}
