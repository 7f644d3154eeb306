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
    /** The header of a snapshot: the offset after the last event that it contains. */
    public static final String SNAPSHOT_HEADER = "eventsql-snapshot-next-offset";

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
        long next = events.isEmpty()
                ? snapshot.map(Aggregate::nextOffset).orElse(0L)
                : events.getLast().offset() + 1;
        return Event.of(key, value).withHeader(SNAPSHOT_HEADER, Long.toString(next));
    }

    /**
     * Returns the offset after the last event that a snapshot contains.
     *
     * @throws EventSqlException if the event has no such header
     */
    static long nextOffset(StoredEvent snapshot) {
        String header = snapshot.headers().get(SNAPSHOT_HEADER);
        try {
            return Long.parseLong(String.valueOf(header));
        } catch (NumberFormatException e) {
            throw new EventSqlException(
                    "The event at " + snapshot.position() + " is no snapshot: header " + SNAPSHOT_HEADER + " is "
                            + header,
                    e);
        }
    }
}
