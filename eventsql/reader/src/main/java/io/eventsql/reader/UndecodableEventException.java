package io.eventsql.reader;

/**
 * Thrown if the next event cannot be decoded, because its key or headers are no UTF-8, its headers no JSON object, or the
 * block that it is in is damaged. The library does not write such events. Reading may continue at the next offset; of a
 * damaged block, each offset fails in the same way.
 */
public final class UndecodableEventException extends EventReaderException {
    private static final long serialVersionUID = 1L;

    private final StreamPartition partition;
    private final long offset;

    UndecodableEventException(StreamPartition partition, long offset, Throwable cause) {
        super(
                "The event at offset " + offset + " of " + partition + " cannot be decoded: " + cause.getMessage(),
                cause);
        this.partition = partition;
        this.offset = offset;
    }

    /** Returns the partition. */
    public StreamPartition partition() {
        return partition;
    }

    /** Returns the event's offset. */
    public long offset() {
        return offset;
    }
}
