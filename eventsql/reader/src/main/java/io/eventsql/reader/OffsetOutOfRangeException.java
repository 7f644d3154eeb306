package io.eventsql.reader;

/**
 * Thrown if the offset to read is below the start of the log, because retention has removed it, or beyond its head. A
 * standby that has not replayed an offset yet is no such case. Reading may continue at {@link #logStart()} or {@link
 * #head()}.
 */
public final class OffsetOutOfRangeException extends EventReaderException {
    private static final long serialVersionUID = 1L;

    private final StreamPartition partition;
    private final long offset;
    private final long logStart;
    private final long head;

    OffsetOutOfRangeException(long offset, PartitionRange range) {
        super("Offset " + offset + " of " + range.partition() + " is out of range: the log starts at "
                + range.logStart() + " and its next offset is " + range.head());
        this.partition = range.partition();
        this.offset = offset;
        this.logStart = range.logStart();
        this.head = range.head();
    }

    /** Returns the partition. */
    public StreamPartition partition() {
        return partition;
    }

    /** Returns the requested offset. */
    public long offset() {
        return offset;
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
