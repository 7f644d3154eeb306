package io.eventsql.internal.move;

import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Takes steps on shards, and retries what may succeed later: a lock that is not available, a connection that is lost. */
final class ShardCalls {
    private static final Logger LOG = LoggerFactory.getLogger(ShardCalls.class);
    private static final int ATTEMPTS_MAX = 40;
    private static final long RETRY_MS = 100;

    private ShardCalls() {}

    /** Statements of one transaction. */
    @FunctionalInterface
    interface Statements {
        void run(Connection connection) throws SQLException;
    }

    /** Runs statements in one transaction, whose commit is replicated. */
    static void transaction(Shard shard, Statements statements) throws SQLException {
        shard.require().replicatedTransaction(connection -> {
            statements.run(connection);
            return true;
        });
    }

    /** Takes a step that is one transaction. */
    static void step(String action, Shard shard, Statements statements) {
        call(action, shard, () -> {
            transaction(shard, statements);
            return true;
        });
    }

    /** Takes a step. An interrupt ends the call after an attempt that fails. */
    static <T> T call(String action, Shard shard, Callable<T> step) {
        String failure = action + " on " + shard + " failed";
        for (int attempt = 1; ; attempt++) {
            try {
                return step.call();
            } catch (SQLException e) {
                rejectForGood(e);
                boolean mayPass = SqlErrors.classify(e) != ErrorKind.CONTENT && attempt < ATTEMPTS_MAX;
                if (!mayPass || Thread.currentThread().isInterrupted()) {
                    throw new EventSqlException(failure + "; repeat the call to continue: " + SqlErrors.message(e), e);
                }
                LOG.debug("{}; retrying in {} ms", failure, RETRY_MS, e);
                pause();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new EventSqlException(failure, e);
            }
        }
    }

    private static void rejectForGood(SQLException e) {
        switch (SqlErrors.state(e)) {
            case SqlErrors.NOT_MOVABLE ->
                throw new InvalidInputException("shards", "cannot change: " + SqlErrors.message(e));
            case SqlErrors.SHARD_REMOVED ->
                throw new InvalidInputException("shards", "must not contain a shard that was removed");
            default -> {
                // may pass
            }
        }
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(RETRY_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
