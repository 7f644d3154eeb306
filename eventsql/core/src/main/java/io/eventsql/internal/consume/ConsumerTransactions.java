package io.eventsql.internal.consume;

import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Optional;
import java.util.OptionalInt;

/** Runs transactions about a consumer on the shards that know it. Thread-safe. */
final class ConsumerTransactions {
    private final StreamSpec stream;
    private final String consumer;
    private final WakeUp wakeUp;

    ConsumerTransactions(StreamSpec stream, String consumer, WakeUp wakeUp) {
        this.stream = stream;
        this.consumer = consumer;
        this.wakeUp = wakeUp;
    }

    /** Statements on one shard, in a transaction. */
    @FunctionalInterface
    interface Work<T> {
        T run(Connection connection, Shard shard, int consumerId) throws SQLException;
    }

    /** Changes the consumer on one shard, and signals its members once that is committed. */
    Optional<Long> change(String action, Shard shard, Work<Long> work) {
        int[] changed = {-1};
        Optional<Long> result = call(action, shard, (c, s, id) -> {
            changed[0] = id;
            return work.run(c, s, id);
        });
        if (result.isPresent()) {
            wakeUp.consumerChanged(shard, changed[0]);
        }
        return result;
    }

    /** Runs the statements in a transaction; returns nothing if the shard does not know the consumer. */
    <T> Optional<T> call(String action, Shard shard, Work<T> work) {
        try {
            OptionalInt streamId = shard.streams().readId(stream);
            if (streamId.isEmpty()) {
                return Optional.empty();
            }
            return shard.require().transaction(connection -> {
                OptionalInt id = shard.tables().consumers().id(connection, streamId.getAsInt(), consumer);
                return id.isEmpty() ? Optional.empty() : Optional.of(work.run(connection, shard, id.getAsInt()));
            });
        } catch (SQLException e) {
            throw new EventSqlException(
                    "Could not " + action + " consumer " + consumer + " of stream " + stream.name() + " on " + shard
                            + ": " + e.getMessage(),
                    e);
        }
    }
}
