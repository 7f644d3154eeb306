package io.eventsql.internal.consume;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.UndecodableEventException;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.AppendStatement.Rows;
import io.eventsql.internal.sql.HeadersJson;
import io.eventsql.internal.sql.MapFence;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.StoredValue;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies events of one member to its consumer's dead-letter stream: to the same partition of the same shard, so that the
 * copy and the offset are committed together. Thread-safe.
 */
final class DeadLetters {
    private static final Logger LOG = LoggerFactory.getLogger(DeadLetters.class);
    private static final String HEADER_PREFIX = "eventsql-dead-letter-";

    private final @Nullable StreamSpec stream;
    private final Shard shard;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final UUID producer = UUID.randomUUID();
    private final AtomicLong batchNumber = new AtomicLong();

    /** @param stream the dead-letter stream; {@code null}: the consumer has none */
    DeadLetters(@Nullable StreamSpec stream, Shard shard, SegmentKeeper segments, WakeUp wakeUp) {
        this.stream = stream;
        this.shard = shard;
        this.segments = segments;
        this.wakeUp = wakeUp;
    }

    private StreamSpec stream() {
        if (stream == null) {
            throw new EventSqlException("the consumer has no dead-letter stream");
        }
        return stream;
    }

    /**
     * Returns a step that appends a copy of the event and records it; it does nothing if that is stored already, or if the
     * event was erased.
     */
    CopyStep copyStep(Assignment assignment, StoredEvent event, String error, int attempts) {
        return new CopyStep(assignment, event, error, attempts);
    }

    /** Looks the stream up before its transaction begins: a lookup needs a connection, too. */
    final class CopyStep implements TransactionStep {
        private final Assignment assignment;
        private final StoredEvent event;
        private final String error;
        private final int attempts;
        private int streamId;
        private boolean isErased;

        private CopyStep(Assignment assignment, StoredEvent event, String error, int attempts) {
            this.assignment = assignment;
            this.event = event;
            this.error = error;
            this.attempts = attempts;
        }

        /** @throws UnknownStreamException if the stream was deleted */
        @Override
        public void prepare() throws SQLException {
            streamId = shard.streams().ensure(stream());
        }

        /** Returns whether the event was not copied, because it was erased after it was fetched. */
        boolean isErased() {
            return isErased;
        }

        @Override
        public void run(Connection connection) throws SQLException {
            var parkedEvents = shard.tables().parkedEvents();
            if (parkedEvents.isParkedEvent(connection, assignment.consumerId(), event.partition(), event.offset())) {
                return;
            }
            isErased = !shard.tables()
                    .erasures()
                    .erasedOffsets(connection, assignment.streamId(), event.partition(), List.of(event.offset()))
                    .isEmpty();
            if (isErased) {
                return;
            }
            Rows rows = new Rows(
                    new String[] {stream().name()},
                    new int[] {streamId},
                    new int[] {event.partition()},
                    new int[] {1},
                    new String[] {event.key()},
                    new byte[] @Nullable [] {StoredValue.of(event)},
                    new String[] {HeadersJson.encode(headers(assignment, event, error, attempts))});
            long[] bases = shard.tables()
                    .append()
                    .execute(
                            connection,
                            producer,
                            batchNumber.incrementAndGet(),
                            MapFence.NONE,
                            assignment.incarnation(),
                            rows);
            shard.tables().moves().openPartition(connection, streamId, event.partition());
            parkedEvents.addDeadLetter(
                    connection,
                    assignment.consumerId(),
                    event,
                    assignment.undecodable().headersJson(event),
                    new EventPosition(stream().name(), event.shard(), event.partition(), bases[0]),
                    error,
                    attempts);
        }
    }

    private static Map<String, String> headers(Assignment assignment, StoredEvent event, String error, int attempts) {
        Map<String, String> headers = new LinkedHashMap<>(event.headers());
        headers.put(HEADER_PREFIX + "stream", event.stream());
        headers.put(HEADER_PREFIX + "shard", Integer.toString(event.shard()));
        headers.put(HEADER_PREFIX + "partition", Integer.toString(event.partition()));
        headers.put(HEADER_PREFIX + "offset", Long.toString(event.offset()));
        headers.put(HEADER_PREFIX + "published-at", event.publishedAt().toString());
        headers.put(HEADER_PREFIX + "consumer", assignment.spec().name());
        headers.put(HEADER_PREFIX + "error", error.replace('\0', ' '));
        headers.put(HEADER_PREFIX + "attempts", Integer.toString(attempts));
        headers.put(HEADER_PREFIX + "time", Instant.now().toString());
        UndecodableEventException undecodable = assignment.undecodable().failure(event);
        String storedHeaders = undecodable == null ? null : undecodable.storedHeaders();
        if (storedHeaders != null) {
            headers.put(HEADER_PREFIX + "headers", storedHeaders);
        }
        return headers;
    }

    /** After the commit: signals the dead-letter stream's consumers. */
    void signalCopy(int partition) {
        try {
            wakeUp.appended(shard, shard.streams().ensure(stream()), partition);
        } catch (SQLException | UnknownStreamException e) {
            LOG.debug("Signalling consumers of {} failed; they poll", stream().name(), e);
        }
    }

    /**
     * Adds partitions to the dead-letter stream if the consumer's stream has more, because it has grown.
     *
     * @return whether a further attempt may succeed at once
     */
    private boolean addPartition(StreamSpec copies, int partition) {
        try {
            int needed = partition + 1;
            if (shard.streams().countPartitions(copies) < needed) {
                int id = shard.streams().ensure(copies);
                shard.require().transaction(connection -> {
                    shard.tables().growth().addPartitions(connection, id, needed);
                    return needed;
                });
                LOG.info("Stream {} has {} partitions on {} now", copies.name(), needed, shard);
            }
            return true;
        } catch (SQLException e) {
            LOG.warn("Adding partitions to {} failed; retrying with the event: {}", copies.name(), e.getMessage());
            return false;
        }
    }

    /**
     * Removes the cause of an error of the protocol, if it is one of the dead-letter stream: adds a missing segment, or
     * forgets the id of a stream that no longer exists.
     *
     * @return whether a further attempt may succeed, or fail for good, at once
     */
    boolean remedy(Assignment assignment, SQLException failure) {
        try {
            return stream != null && remedy(stream, assignment, failure);
        } catch (UnknownStreamException e) {
            LOG.debug("The stream of dead letters was deleted, which the next attempt reports", e);
            return true;
        }
    }

    private boolean remedy(StreamSpec copies, Assignment assignment, SQLException failure) {
        String state = SqlErrors.state(failure);
        if (state.equals(SqlErrors.NO_PARTITION) || state.equals(SqlErrors.OTHER_STREAM)) {
            shard.streams().forget(copies.name());
            return addPartition(copies, assignment.partition());
        }
        if (!SqlErrors.isMissingSegment(failure)) {
            return false;
        }
        try {
            segments.ensureRoom(
                    shard, assignment.incarnation(), copies, shard.streams().ensure(copies), assignment.partition(), 1);
            return true;
        } catch (SQLException e) {
            if (SqlErrors.state(e).equals(SqlErrors.NO_PARTITION)) {
                shard.streams().forget(copies.name());
                return true;
            }
            LOG.warn("Adding a segment to {} failed; retrying with the event: {}", copies.name(), e.getMessage());
            return false;
        }
    }
}
