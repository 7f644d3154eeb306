package io.eventsql.internal.move;

import io.eventsql.InvalidInputException;
import io.eventsql.internal.shard.RetriedStep;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Optional;
import java.util.concurrent.Callable;

/** Takes the steps of moves on shards. */
final class ShardCalls {
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

    /** Takes a step, as {@link RetriedStep} does. */
    static <T> T call(String action, Shard shard, Callable<T> step) {
        return RetriedStep.take(action + " on " + shard + " failed", ShardCalls::rejection, step);
    }

    private static Optional<RuntimeException> rejection(SQLException e) {
        return switch (SqlErrors.state(e)) {
            case SqlErrors.NOT_MOVABLE ->
                Optional.of(new InvalidInputException("shards", "cannot change: " + SqlErrors.message(e)));
            case SqlErrors.SHARD_REMOVED ->
                Optional.of(new InvalidInputException("shards", "must not contain a shard that was removed"));
            default -> Optional.empty();
        };
    }
}
