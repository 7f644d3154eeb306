package io.eventsql.spring;

/** What {@link EventSqlTemplate} does in a transaction that events cannot be part of. */
public enum UnjoinableTransaction {
    /** Throws {@link TransactionNotJoinableException}. */
    FAIL,
    /** Publishes at once: the events stay when the transaction is rolled back. */
    PUBLISH_DIRECTLY
}
