package io.eventsql;

/** The offset asked for is below the log's start (removed by retention) or beyond its head. */
public final class OffsetOutOfRangeException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    private final EventPosition asked;
    private final long logStart;
    private final long head;

    public OffsetOutOfRangeException(EventPosition asked, long logStart, long head) {
        super("Offset " + asked.offset() + " of partition " + asked.partition() + " on shard " + asked.shard()
                + " of stream " + asked.stream() + " is out of range: the log starts at " + logStart
                + " and its next offset is " + head);
        this.asked = asked;
        this.logStart = logStart;
        this.head = head;
    }

    /** What was asked for. */
    public EventPosition asked() {
        return asked;
    }

    /** The first offset that still exists. */
    public long logStart() {
        return logStart;
    }

    /** The offset that the next event will get. */
    public long head() {
        return head;
    }
}
