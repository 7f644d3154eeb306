package io.eventsql;

import java.sql.Connection;

/**
 * Runs the transactions of a transactional handler in place of the library, so that the handler can join those of a
 * framework. Called concurrently by the consumer's handlers: implementations must be thread-safe.
 *
 * <p>Exactly-once handling relies on what the library does inside the transaction, around the handler: it verifies that
 * the connection leads to the event's shard, takes the lock by which other members find the transaction, and commits the
 * offset last. The boundary must guarantee one thing: if {@link #inTransaction} returns, the transaction is committed.
 * Any isolation level works; above READ COMMITTED, a lost partition surfaces as a serialization error, and the
 * transaction is rolled back as well.
 */
@FunctionalInterface
public interface TransactionBoundary {
    /**
     * Begins a new transaction in the shard's database, runs the work in it exactly once in the calling thread, and
     * commits.
     *
     * @param shard the event's shard; its data source is the one given to {@link EventSql#builder}
     * @throws Exception if the transaction was not committed: the exception of the work, or the reason why the transaction
     *     could not be begun or committed. After a failed commit the library itself determines the outcome.
     */
    void inTransaction(ShardInfo shard, Work work) throws Exception;

    /** The work to be done in the transaction. */
    @FunctionalInterface
    interface Work {
        /**
         * Handles events and commits their offset.
         *
         * @param connection the transaction's connection. While the work runs, its network timeout is that of the library,
         *     and {@link ConsumerSpec#handlerTimeout()} in the handler; afterwards it is what it was.
         * @throws Exception if the transaction must be rolled back
         */
        void run(Connection connection) throws Exception;
    }
}
