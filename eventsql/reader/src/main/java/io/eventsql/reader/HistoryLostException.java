package io.eventsql.reader;

/**
 * Thrown if a database no longer has events that were read from it, or that it had where reading started: it went back in
 * time, by a failover with loss or a restore, or the stream was deleted and created again. What was derived from the lost
 * events has to be discarded by the caller. To read the new history, continue at {@link ReadPosition#at} of an offset.
 */
public final class HistoryLostException extends EventReaderException {
    private static final long serialVersionUID = 1L;

    private final StreamPartition partition;
    private final ReadPosition position;

    HistoryLostException(StreamPartition partition, ReadPosition position, String found) {
        super("The history of " + partition + " up to offset " + position.offset() + " was lost: " + found);
        this.partition = partition;
        this.position = position;
    }

    /** Returns the partition. */
    public StreamPartition partition() {
        return partition;
    }

    /** Returns the position in the lost history. */
    public ReadPosition position() {
        return position;
    }
}
