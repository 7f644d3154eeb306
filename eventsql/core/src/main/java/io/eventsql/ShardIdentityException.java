package io.eventsql;

/**
 * Thrown if a database is not the shard it is used as: it belongs to another cluster, has another slot map, was given
 * twice, or a shard is missing.
 */
public final class ShardIdentityException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    public ShardIdentityException(String message) {
        super(message);
    }
}
