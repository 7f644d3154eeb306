package io.eventsql.spring;

/** How {@link EventSqlTemplate} behaves inside a transaction that events cannot be part of. */
public enum UnjoinableTransaction {
    /** Throws {@link TransactionNotJoinableException}. */
    FAIL,
    /** Publishes at once; a rollback does not undo it. */
    PUBLISH_DIRECTLY
}
