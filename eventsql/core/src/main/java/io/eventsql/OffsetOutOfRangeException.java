package io.eventsql;

/** Thrown if the requested offset is below the start of the log (removed by retention) or beyond its head. */
public final class OffsetOutOfRangeException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    private final EventPosition requested;
    private final long logStart;
    private final long head;

    public OffsetOutOfRangeException(EventPosition requested, long logStart, long head) {
        super("Offset " + requested.offset() + " of partition " + requested.partition() + " on shard "
                + requested.shard()
                + " of stream " + requested.stream() + " is out of range: the log starts at " + logStart
                + " and its next offset is " + head);
        this.requested = requested;
        this.logStart = logStart;
        this.head = head;
    }

    /** Returns the requested position. */
    public EventPosition requested() {
        return requested;
    }

    /** Returns the first offset that still exists. */
    public long logStart() {
        return logStart;
    }

    /** Returns the offset of the next event to be published. */
    public long head() {
        return head;
    }
}
