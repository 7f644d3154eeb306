package io.eventsql;

/** A database is not the shard it is used as: of another cluster, missing, given twice, or with another slot map. */
public final class ShardIdentityException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    public ShardIdentityException(String message) {
        super(message);
    }
}
