package io.eventsql.reader;

/** Thrown if no shard has the stream, or the stream has no such partition. */
public final class UnknownStreamException extends EventReaderException {
    private static final long serialVersionUID = 1L;

    UnknownStreamException(String stream) {
        super("Stream " + stream + " does not exist");
    }

    UnknownStreamException(StreamPartition partition) {
        super("There is no " + partition);
    }
}
