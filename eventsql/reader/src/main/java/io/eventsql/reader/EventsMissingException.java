package io.eventsql.reader;

/**
 * Thrown if the next event is missing: its offset lies between the log's start and its head, and compaction has not removed
 * it, but its row does not exist, for example because it was deleted with SQL. Reading may continue at {@link #nextOffset()}.
 */
public final class EventsMissingException extends EventReaderException {
    private static final long serialVersionUID = 1L;

    private final StreamPartition partition;
    private final long offset;
    private final long nextOffset;

    EventsMissingException(StreamPartition partition, long offset, long nextOffset) {
        super("Missing events [" + offset + ", " + nextOffset + ") of " + partition
                + ": their rows are not in the log");
        this.partition = partition;
        this.offset = offset;
        this.nextOffset = nextOffset;
    }

    /** Returns the partition. */
    public StreamPartition partition() {
        return partition;
    }

    /** Returns the offset of the first missing event. */
    public long offset() {
        return offset;
    }

    /** Returns the offset after the missing events. */
    public long nextOffset() {
        return nextOffset;
    }
}
