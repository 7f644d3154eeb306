package io.eventsql.internal.consume;

import io.eventsql.TransactionBoundary;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.Database.HandlerWork;
import io.eventsql.internal.sql.NetworkTimeout;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;

/** Begins and ends the transactions of handlers. Thread-safe. */
sealed interface HandlerTransactions {
    /**
     * Runs the work in a transaction.
     *
     * @return whether it was committed; {@code false} if the work returned {@code false}
     * @throws Database.UnavailableException if there was no connection or it broke
     */
    boolean run(Shard shard, HandlerWork work) throws Exception;

    /** Whether the application chooses the connection, so that it may lead to any database. */
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

    /** The application's, or its framework's. What happens inside is recorded: exceptions may return wrapped, or not at all. */
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

    /** One transaction, as the library sees it from inside. */
    final class Inside implements TransactionBoundary.Work {
        private final Database database;
        private final HandlerWork work;
        private State state = State.NOT_RUN;
        private @Nullable Throwable failure;

        /** NOT_RUN → RUNNING → TO_COMMIT, ROLLED_BACK or BROKEN. */
        private enum State {
            NOT_RUN,
            RUNNING,
            /** The work has ended, and the boundary is to commit. */
            TO_COMMIT,
            /** The work has failed or is not to be committed. */
            ROLLED_BACK,
            /** As before, and the connection did not even roll back. */
            BROKEN
        }

        private Inside(Database database, HandlerWork work) {
            this.database = database;
            this.work = work;
        }

        @Override
        public void run(Connection connection) throws Exception {
            if (state != State.NOT_RUN) {
                throw new IllegalStateException("the transaction boundary has run the work twice");
            }
            state = State.RUNNING;
            NetworkTimeout limit = limit(connection);
            try (limit) {
                runLimited(connection);
            }
        }

        /** The library's network timeout applies to its own statements, also to a rollback. */
        private NetworkTimeout limit(Connection connection) throws SQLException {
            try {
                return database.limit(connection);
            } catch (SQLException | RuntimeException e) {
                fail(connection, e);
                throw e;
            }
        }

        private void runLimited(Connection connection) throws Exception {
            try {
                requireTransaction(connection);
                if (!work.run(connection)) {
                    throw new RefusedException();
                }
                state = State.TO_COMMIT;
            } catch (Throwable e) {
                fail(connection, e);
                throw e;
            }
        }

        /** Rolls back at once: a boundary that ignores failures must find nothing of the handler's to commit. */
        private void fail(Connection connection, Throwable e) {
            failure = e;
            state = Database.rollback(connection) ? State.ROLLED_BACK : State.BROKEN;
        }

        private static void requireTransaction(Connection connection) throws Exception {
            if (connection.getAutoCommit()) {
                throw new HandlerCall.NotHandledException(
                        "the transaction boundary has begun no transaction: the connection is in autocommit mode");
            }
        }

        /** Returns whether the boundary has committed, after it has returned. */
        private boolean outcome() throws Exception {
            if (state == State.NOT_RUN) {
                throw new HandlerCall.NotHandledException("the transaction boundary has not run the work");
            }
            throwFailure(null);
            return state == State.TO_COMMIT;
        }

        /** Returns {@code false} if the work is not to be committed, or throws, after the boundary has thrown. */
        private boolean outcomeAfter(Throwable thrown) throws Exception {
            if (state == State.NOT_RUN) {
                throw new Database.UnavailableException(thrown);
            }
            throwFailure(thrown);
            if (state != State.TO_COMMIT) {
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
            if (state == State.BROKEN && inside instanceof Exception && !Database.isOwnTimeout(inside)) {
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

    /** Makes the boundary roll back: the partition is lost. */
    final class RefusedException extends SQLException {
        private static final long serialVersionUID = 1L;

        RefusedException() {
            super("the offset had changed, everything is rolled back", "40001");
        }
    }
}
