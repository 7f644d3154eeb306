package io.eventsql.internal.consume;

import io.eventsql.TransactionBoundary;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.Database.HandlerWork;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** Begins and ends the transactions of handlers. Thread-safe. */
sealed interface HandlerTransactions {
    /**
     * Runs the work in a transaction.
     *
     * @return whether it was committed; {@code false} if the work said no
     * @throws Database.UnavailableException if there was no connection or it broke
     */
    boolean run(Shard shard, HandlerWork work) throws Exception;

    /** Whether the connection may be any: the library did not choose it. */
    boolean areForeign();

    /** The library's own, on connections of the shard's pool. */
    record Own() implements HandlerTransactions {
        @Override
        public boolean run(Shard shard, HandlerWork work) throws Exception {
            return shard.require().handlerTransaction(work);
        }

        @Override
        public boolean areForeign() {
            return false;
        }
    }

    /** Somebody else's. What happened inside is remembered: exceptions may come back wrapped, or not at all. */
    record Foreign(TransactionBoundary boundary) implements HandlerTransactions {
        @Override
        public boolean areForeign() {
            return true;
        }

        @Override
        public boolean run(Shard shard, HandlerWork work) throws Exception {
            Inside inside = new Inside(shard.require(), work);
            try {
                boundary.inTransaction(shard.info(), inside);
            } catch (Throwable e) { // whatever a framework throws
                return inside.outcomeAfter(e);
            }
            return inside.outcome();
        }
    }

    /** One transaction, seen from inside. */
    final class Inside implements TransactionBoundary.Work {
        private final Database database;
        private final HandlerWork work;
        private boolean begun;
        private boolean wantsCommit;
        private boolean broken;
        private @Nullable Throwable failure;

        private Inside(Database database, HandlerWork work) {
            this.database = database;
            this.work = work;
        }

        @Override
        public void run(Connection connection) throws Exception {
            if (begun) {
                throw new IllegalStateException("the transaction boundary has run the work twice");
            }
            begun = true;
            try {
                requireTransaction(connection);
                wantsCommit = work.run(connection);
                if (!wantsCommit) {
                    throw new RefusedException();
                }
            } catch (Throwable e) {
                failure = e;
                // Here and now: nothing of the handler's may be left for a boundary that takes no notice of failures.
                broken = !database.rollbackForeign(connection);
                throw e;
            }
        }

        private void requireTransaction(Connection connection) throws Exception {
            if (connection.getAutoCommit()) {
                throw new HandlerCall.NotHandledException(
                        "the transaction boundary has begun no transaction: the connection is in autocommit mode");
            }
            database.limitAnswers(connection);
        }

        /** After the boundary has returned. */
        private boolean outcome() throws Exception {
            if (!begun) {
                throw new HandlerCall.NotHandledException("the transaction boundary has not run the work");
            }
            throwFailure(null);
            return wantsCommit;
        }

        /** After the boundary has thrown. */
        private boolean outcomeAfter(Throwable thrown) throws Exception {
            if (!begun) {
                throw new Database.UnavailableException(thrown);
            }
            throwFailure(thrown);
            if (!wantsCommit) {
                return false;
            }
            if (SqlErrors.isConnectionLost(thrown)) {
                throw new Database.UnavailableException(thrown);
            }
            throw asException(thrown);
        }

        private void throwFailure(@Nullable Throwable thrown) throws Exception {
            Throwable inside = failure;
            if (inside == null || inside instanceof RefusedException) {
                return;
            }
            if (thrown != null && !thrown.equals(inside) && !inside.equals(thrown.getCause())) {
                inside.addSuppressed(thrown);
            }
            if (broken && inside instanceof Exception && !SqlErrors.isTimeout(inside)) {
                throw new Database.UnavailableException(inside);
            }
            throw asException(inside);
        }

        private static Exception asException(Throwable thrown) {
            if (thrown instanceof Error error) {
                throw error;
            }
            return thrown instanceof Exception exception ? exception : new IllegalStateException(thrown);
        }
    }

    /** Has the boundary roll back: the partition was lost. */
    final class RefusedException extends SQLException {
        private static final long serialVersionUID = 1L;

        RefusedException() {
            super("the offset had changed: everything is rolled back", "40001");
        }
    }
}
