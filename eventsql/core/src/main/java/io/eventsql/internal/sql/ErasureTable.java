package io.eventsql.internal.sql;

import java.sql.Connection;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** {@code erasure}: the erasures of a shard. Every change is one call of a function that runs with the owner's rights. */
public final class ErasureTable {
    // Index: the primary key.
    private static final String BEGIN = "SELECT eventsql.begin_erasure_v1(?, ?, ?, ?::text[], ?::text[])";

    // Scans erasure, which has few rows. Takes no row lock.
    private static final String LIST = """
            SELECT erasure_id, stream, key, headers, dead_letter_streams, started_at, phase, scanned, erased, files
            FROM eventsql.erasures_v1()""";

    // Index: the primary key of each segment, in its order. Locks the erasure's row and the rows that it erases.
    private static final String STEP =
            "SELECT phase, scanned, erased, files, is_waiting, reason FROM eventsql.erase_step_v1(?, ?)";

    // Index: the primary key of the segments. Holds an advisory lock until the transaction ends.
    private static final String ERASED_OFFSETS = "SELECT * FROM eventsql.erased_offsets_v1(?, ?, ?::bigint[])";

    private final SqlSchema schema;

    public ErasureTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** An erasure as it is recorded on one shard. */
    public record Row(
            UUID id,
            String stream,
            String key,
            Set<String> headers,
            Set<String> deadLetterStreams,
            Instant startedAt,
            Progress progress) {}

    /**
     * The progress on one shard.
     *
     * @param files how many tables may have values in their files
     * @param reason what the last step could not do; {@code null}: it was not prevented from anything
     */
    public record Progress(
            String phase,
            long scanned,
            long erased,
            int files,
            boolean isWaiting,
            @Nullable String reason) {
        /** Returns whether no statement reads a value any more. */
        public boolean isErased() {
            return phase.equals("files") || isDone();
        }

        public boolean isDone() {
            return phase.equals("done");
        }
    }

    /**
     * Records an erasure, unless it is recorded: then it replaces no other one, because that may have begun later, and erases events
     * that this one leaves. Returns whether this shard has the stream.
     */
    public boolean begin(
            Connection connection,
            UUID id,
            String stream,
            String key,
            Collection<String> headers,
            Collection<String> deadLetterStreams) {
        if (find(connection, id).isPresent()) {
            return true;
        }
        return Jooq.using(connection)
                        .fetchValue(
                                schema.sql(BEGIN),
                                id,
                                stream,
                                key,
                                headers.toArray(String[]::new),
                                deadLetterStreams.toArray(String[]::new))
                != null;
    }

    /** Returns the erasures of this shard, the newest first. */
    public List<Row> list(Connection connection) {
        return Jooq.using(connection)
                .fetch(schema.sql(LIST))
                .map(r -> new Row(
                        r.get(0, UUID.class),
                        r.get(1, String.class),
                        r.get(2, String.class),
                        Set.copyOf(Arrays.asList(r.get(3, String[].class))),
                        Set.copyOf(Arrays.asList(r.get(4, String[].class))),
                        r.get(5, OffsetDateTime.class).toInstant(),
                        new Progress(
                                r.get(6, String.class),
                                r.get(7, Long.class),
                                r.get(8, Long.class),
                                r.get(9, Integer.class),
                                false,
                                null)));
    }

    /** Returns an erasure of this shard. */
    public Optional<Row> find(Connection connection, UUID id) {
        return list(connection).stream().filter(row -> row.id().equals(id)).findFirst();
    }

    /** Runs the next step, in the caller's transaction. */
    public Progress step(Connection connection, UUID id, int maxOffsets) {
        var r = Jooq.using(connection).fetchSingle(schema.sql(STEP), id, maxOffsets);
        return new Progress(
                r.get(0, String.class),
                r.get(1, Long.class),
                r.get(2, Long.class),
                r.get(3, Integer.class),
                r.get(4, Boolean.class),
                r.get(5, String.class));
    }

    /**
     * Returns which events are erased, for a transaction that is about to store copies of them: an erasure that has not
     * passed them yet finds the copies.
     */
    public Set<Long> erasedOffsets(Connection connection, int streamId, int partition, Collection<Long> offsets) {
        return new HashSet<>(Jooq.using(connection)
                .fetch(schema.sql(ERASED_OFFSETS), streamId, partition, offsets.toArray(Long[]::new))
                .getValues(0, Long.class));
    }
}
