package io.eventsql;

/**
 * Thrown if the requested event is missing: its offset lies between the log's start and its head, but its row does not
 * exist, for example because it was deleted with SQL. Reading may continue at {@link #nextOffset()}.
 */
public final class EventsMissingException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    private final EventPosition first;
    private final long nextOffset;

    public EventsMissingException(EventPosition first, long nextOffset) {
        super("Missing events [" + first.offset() + ", " + nextOffset + ") of partition " + first.partition()
                + " on shard " + first.shard() + " of stream " + first.stream() + ": their rows are not in the log");
        this.first = first;
        this.nextOffset = nextOffset;
    }

    /** Returns the position of the first missing event. */
    public EventPosition first() {
        return first;
    }

    /** Returns the offset after the missing events. */
    public long nextOffset() {
        return nextOffset;
    }
}
