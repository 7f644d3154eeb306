package io.eventsql.reader;

/** Thrown if the databases are not the shards of one cluster, all of them and each once. */
public final class ShardIdentityException extends EventReaderException {
    private static final long serialVersionUID = 1L;

    ShardIdentityException(String message) {
        super(message);
    }
}
