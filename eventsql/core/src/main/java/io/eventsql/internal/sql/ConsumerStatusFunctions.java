package io.eventsql.internal.sql;

import io.eventsql.ConsumerSummary;
import io.eventsql.PartitionState;
import java.sql.Connection;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.UUID;
import org.jooq.Record;
import org.jooq.Result;
import org.jspecify.annotations.Nullable;

/** The functions that show the state of consumers: of one, of all, and for the process that reports them. Off the hot path. */
public final class ConsumerStatusFunctions {
    // Columns of consumers_v1. What a partition waits for is looked up only if it waits: that reads all barriers of the
    // stream.
    private static final String PARTITIONS = """
            WITH v AS MATERIALIZED (
                SELECT * FROM eventsql.consumers_v1(?, ?, ?) WITH ORDINALITY
            ), held AS MATERIALIZED (
                SELECT DISTINCT s.name AS stream, c.name AS consumer, h.partition
                FROM (SELECT DISTINCT v.stream, v.consumer FROM v) d
                JOIN eventsql.stream s ON s.name = d.stream
                JOIN eventsql.consumer c ON c.stream_id = s.stream_id AND c.name = d.consumer
                CROSS JOIN LATERAL eventsql.held_partitions_v1(c.consumer_id) h
            )
            SELECT v.stream, v.consumer, v.members, v.state_since, v.parked_error, v.parked_at, v.partition, v.state,
                   coalesce(v.error, CASE WHEN h.partition IS NOT NULL
                       THEN eventsql.waits_for_v1(v.stream, v.consumer, v.partition) END),
                   v.log_start, v.head, v.next_offset, v.lag_ms, v.committed_at, v.epoch, v.member, v.expires_at,
                   v.parked_keys, v.parked_events
            FROM v LEFT JOIN held h ON h.stream = v.stream AND h.consumer = v.consumer AND h.partition = v.partition
            ORDER BY v.ordinality""";

    private static final String SUMMARY_COLUMNS = """
            SELECT stream, consumer, members, partitions, stopped_partitions, paused_partitions, unassigned_partitions, lag,
                   lag_ms, next_offsets, parked_events, dead_letters
            """;
    private static final String SUMMARIES = SUMMARY_COLUMNS + "FROM eventsql.consumer_summaries_v2(?, ?)";
    // Locks the row of consumer_reporter, unless another process has it.
    private static final String REPORT =
            SUMMARY_COLUMNS + "FROM eventsql.report_consumers_v1(?, ? * interval '1 ms', ?, ?)";

    private final SqlSchema schema;

    public ConsumerStatusFunctions(SqlSchema schema) {
        this.schema = schema;
    }

    /**
     * One partition of a consumer.
     *
     * @param members the living members of the consumer; empty except with its partition 0
     * @param stateSince when the state of the partition began
     * @param parkedError why the newest parked event of the partition could not be handled
     * @param parkedAt when that event was parked
     */
    public record PartitionOfConsumer(
            String stream,
            String consumer,
            List<String> members,
            PartitionState state,
            Instant stateSince,
            @Nullable String parkedError,
            @Nullable Instant parkedAt) {}

    /** Returns the state of a consumer in each partition of this shard. */
    public List<PartitionState> states(Connection connection, int shard, int consumerId) {
        return partitions(connection, shard, consumerId, 1).stream()
                .map(PartitionOfConsumer::state)
                .toList();
    }

    /** Returns the partitions of the first consumers of this shard, in the order of their creation. */
    public List<PartitionOfConsumer> partitions(Connection connection, int shard, int max) {
        return partitions(connection, shard, null, max);
    }

    private List<PartitionOfConsumer> partitions(
            Connection connection, int shard, @Nullable Integer consumerId, int max) {
        return Jooq.using(connection)
                .fetch(schema.sql(PARTITIONS), consumerId, max, PartitionState.PARKED_EVENTS_COUNTED_MAX)
                .map(r -> new PartitionOfConsumer(
                        r.get(0, String.class),
                        r.get(1, String.class),
                        membersOrNone(r.get(2, String[].class)),
                        state(shard, r),
                        r.get(3, OffsetDateTime.class).toInstant(),
                        r.get(4, String.class),
                        instantOrNull(r.get(5, OffsetDateTime.class))));
    }

    private static PartitionState state(int shard, Record r) {
        return new PartitionState(
                shard,
                r.get(6, Integer.class),
                PartitionState.Status.valueOf(r.get(7, String.class).toUpperCase(Locale.ROOT)),
                r.get(8, String.class),
                r.get(9, Long.class),
                r.get(10, Long.class),
                r.get(11, Long.class),
                Duration.ofMillis(r.get(12, Long.class)),
                r.get(13, OffsetDateTime.class).toInstant(),
                r.get(14, Long.class),
                r.get(15, String.class),
                instantOrNull(r.get(16, OffsetDateTime.class)),
                r.get(17, Integer.class),
                r.get(18, Integer.class));
    }

    private static List<String> membersOrNone(String @Nullable [] members) {
        return members == null ? List.of() : List.of(members);
    }

    private static @Nullable Instant instantOrNull(@Nullable OffsetDateTime time) {
        return time == null ? null : time.toInstant();
    }

    /** Returns the state of the first consumers of this shard, in the order of their creation. */
    public List<ConsumerSummary> summaries(Connection connection, int shard, int max) {
        return summaries(
                shard,
                Jooq.using(connection).fetch(schema.sql(SUMMARIES), max, ConsumerSummary.PARKED_EVENTS_COUNTED_MAX));
    }

    /**
     * Returns the state of the first consumers if this process reports those of the database, and renews its lease; empty if
     * another process reports them.
     */
    public Optional<List<ConsumerSummary>> report(
            Connection connection, UUID reporter, Duration lease, int shard, int max) {
        Result<Record> rows = Jooq.using(connection)
                .fetch(schema.sql(REPORT), reporter, lease.toMillis(), max, ConsumerSummary.PARKED_EVENTS_COUNTED_MAX);
        // The first row, without a consumer, says that this process reports.
        return rows.isEmpty() ? Optional.empty() : Optional.of(summaries(shard, rows.subList(1, rows.size())));
    }

    private static List<ConsumerSummary> summaries(int shard, List<Record> rows) {
        return rows.stream()
                .map(r -> new ConsumerSummary(
                        r.get(0, String.class),
                        r.get(1, String.class),
                        shard,
                        r.get(2, Integer.class),
                        r.get(3, Integer.class),
                        r.get(4, Integer.class),
                        r.get(5, Integer.class),
                        r.get(6, Integer.class),
                        r.get(7, Long.class),
                        Duration.ofMillis(r.get(8, Long.class)),
                        r.get(9, Long.class),
                        r.get(10, Integer.class),
                        r.get(11, Integer.class)))
                .toList();
    }

    /** Ends the lease of this process, if it has it: another process may report from now on. */
    public void endReport(Connection connection, UUID reporter) {
        Jooq.using(connection).fetch(schema.sql("SELECT eventsql.end_report_v1(?)"), reporter);
    }
}
