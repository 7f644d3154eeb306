package io.eventsql;

import java.util.List;
import java.util.Optional;

/**
 * The events of a key to rebuild its state from: all of them, or its last snapshot and the events since.
 *
 * @param key the key
 * @param version the key's version: what the next publish expects, if it is to follow directly ({@link ExpectedVersion#of})
 * @param snapshot the last snapshot; empty if there is none
 * @param events in the order of the stream; after a snapshot, those that it does not contain
 */
public record Aggregate(String key, long version, Optional<StoredEvent> snapshot, List<StoredEvent> events) {
    /**
     * The header of a snapshot: the position after the last event that it contains, as {@code shard/partition/offset}; {@code
     * start}: it contains none.
     */
    public static final String SNAPSHOT_HEADER = "eventsql-snapshot-next";

    private static final String START = "start";

    /** Copies the list. */
    public Aggregate {
        events = List.copyOf(events);
    }

    /**
     * Returns a snapshot of this state, to be published to the compacted stream of snapshots, by an outbox or directly. An older
     * snapshot that replaces a newer one does no harm: more events are read after it.
     *
     * @param value the state after {@link #events()}
     */
    public Event newSnapshot(byte[] value) {
        String next = events.isEmpty()
                ? snapshot.map(s -> String.valueOf(s.headers().get(SNAPSHOT_HEADER)))
                        .orElse(START)
                : after(events.getLast().position());
        return Event.of(key, value).withHeader(SNAPSHOT_HEADER, next);
    }

    private static String after(EventPosition last) {
        return last.shard() + "/" + last.partition() + "/" + (last.offset() + 1);
    }

    /**
     * Returns the position after the last event of a stream that a snapshot contains; empty: it contains none.
     *
     * @throws EventSqlException if the event has no such header
     */
    static Optional<EventPosition> next(String stream, StoredEvent snapshot) {
        String header = String.valueOf(snapshot.headers().get(SNAPSHOT_HEADER));
        if (header.equals(START)) {
            return Optional.empty();
        }
        String[] parts = header.split("/", -1);
        try {
            if (parts.length == 3) {
                return Optional.of(new EventPosition(
                        stream, Integer.parseInt(parts[0]), Integer.parseInt(parts[1]), Long.parseLong(parts[2])));
            }
        } catch (NumberFormatException e) {
            // reported below, as any other content is
        }
        throw new EventSqlException(
                "The event at " + snapshot.position() + " is no snapshot: header " + SNAPSHOT_HEADER + " is " + header);
    }
}
