package io.eventsql.internal.consume;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.internal.consume.HandlerCall.Step;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.AppendStatement.Rows;
import io.eventsql.internal.sql.HeadersJson;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.wake.WakeUp;
import java.sql.SQLException;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies events of one consumer to its dead-letter stream: to the same partition of the same shard, so that the copy and
 * the offset commit together. Thread-safe.
 */
final class DeadLetters {
    private static final Logger LOG = LoggerFactory.getLogger(DeadLetters.class);
    static final String HEADER = "eventsql-dead-letter-";

    private final @Nullable StreamSpec stream;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final UUID producer = UUID.randomUUID();
    private final AtomicLong number = new AtomicLong();

    /** @param stream the dead-letter stream; {@code null}: the consumer has none */
    DeadLetters(@Nullable StreamSpec stream, SegmentKeeper segments, WakeUp wakeUp) {
        this.stream = stream;
        this.segments = segments;
        this.wakeUp = wakeUp;
    }

    private StreamSpec stream() {
        if (stream == null) {
            throw new EventSqlException("the consumer has no dead-letter stream");
        }
        return stream;
    }

    /** Appends a copy and remembers it, in the caller's transaction; does nothing if that is stored already. */
    Step step(ShardMember member, StoredEvent event, String error, int attempts) {
        Shard shard = member.shard();
        return connection -> {
            var parkedEvents = shard.tables().parkedEvents();
            if (parkedEvents.isParkedEvent(connection, member.consumerId(), event.partition(), event.offset())) {
                return;
            }
            Rows rows = new Rows(
                    new String[] {stream().name()},
                    new int[] {shard.ensureStream(stream())},
                    new int[] {event.partition()},
                    new int[] {1},
                    new int[] {1},
                    new int[] {0},
                    new String[] {event.key()},
                    new byte[][] {event.value()},
                    new String[] {HeadersJson.encode(headers(member, event, error, attempts))});
            long[] bases = shard.tables()
                    .append()
                    .execute(connection, producer, number.incrementAndGet(), shard.mapVersion(), rows);
            parkedEvents.addDeadLetter(
                    connection,
                    member.consumerId(),
                    event,
                    new EventPosition(stream().name(), event.shard(), event.partition(), bases[0]),
                    error,
                    attempts);
        };
    }

    private static Map<String, String> headers(ShardMember member, StoredEvent event, String error, int attempts) {
        Map<String, String> headers = new LinkedHashMap<>(event.headers());
        headers.put(HEADER + "stream", event.stream());
        headers.put(HEADER + "shard", Integer.toString(event.shard()));
        headers.put(HEADER + "partition", Integer.toString(event.partition()));
        headers.put(HEADER + "offset", Long.toString(event.offset()));
        headers.put(HEADER + "published-at", event.publishedAt().toString());
        headers.put(HEADER + "consumer", member.spec().name());
        headers.put(HEADER + "error", error.replace('\0', ' '));
        headers.put(HEADER + "attempts", Integer.toString(attempts));
        headers.put(HEADER + "time", Instant.now().toString());
        return headers;
    }

    /** After the commit: tells the dead-letter stream's consumers. */
    void appended(ShardMember member, int partition) {
        try {
            wakeUp.appended(member.shard(), member.shard().ensureStream(stream()), partition);
        } catch (SQLException e) {
            LOG.debug("Consumers of {} are not told; they poll", stream().name(), e);
        }
    }

    /** After a failure: whether a segment was missing and is there now. */
    boolean addedSegment(ShardMember member, int partition, SQLException failure) {
        if (stream == null || !SqlErrors.isMissingSegment(failure)) {
            return false;
        }
        try {
            segments.ensureRoom(member.shard(), stream, member.shard().ensureStream(stream), partition);
            return true;
        } catch (SQLException e) {
            LOG.warn("A segment of {} could not be added: {}", stream.name(), e.getMessage());
            return false;
        }
    }
}
