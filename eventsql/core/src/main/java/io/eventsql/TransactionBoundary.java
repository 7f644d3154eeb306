package io.eventsql;

import java.sql.Connection;

/**
 * Begins and ends the transactions in which a transactional handler works, in place of the library: so that the handler
 * works in those of a framework. Used by all of the consumer's handlers at once: thread-safe.
 *
 * <p>What the library does inside, with the handler in between, makes it exactly once: it verifies that the connection is
 * to the event's shard, takes the lock by which others find the transaction, and commits the offset last. It trusts the
 * boundary with one thing: that a return means committed. The isolation level may be any; above READ COMMITTED a
 * partition that was lost shows as a serialization error, and everything is rolled back likewise.
 */
@FunctionalInterface
public interface TransactionBoundary {
    /**
     * Begins a new transaction in the shard's database, runs the work in it once, in the calling thread, and commits.
     *
     * @param shard where the event is; its data source is the one given to {@link EventSql#builder}
     * @throws Exception if it was not committed: whatever the work threw, or why the transaction could not be begun or
     *     committed. After a failed commit the library itself finds out whether it was stored.
     */
    void inTransaction(ShardInfo shard, Work work) throws Exception;

    /** What is done in the transaction. */
    @FunctionalInterface
    interface Work {
        /**
         * Handles events and commits their offset.
         *
         * @param connection of the transaction; the library may set its network time-out
         * @throws Exception if the transaction must be rolled back
         */
        void run(Connection connection) throws Exception;
    }
}
