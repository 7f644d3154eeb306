package io.eventsql.internal.retain;

import io.eventsql.EventSqlException;
import io.eventsql.RetainedSegment;
import io.eventsql.RetentionStatus;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;

/** Reads what retention will do, and what it has done. Changes nothing. Thread-safe. */
public final class RetentionReader {
    private final Shards shards;
    private final StreamRegistry streams;

    public RetentionReader(Shards shards, StreamRegistry streams) {
        this.shards = shards;
        this.streams = streams;
    }

    /** See {@link io.eventsql.EventSql#retentionPlan}. */
    public List<RetainedSegment> plan(String name) {
        StreamSpec stream = streams.require(name);
        shards.requireAllGiven("The retention of stream " + name + " could not be read");
        List<RetainedSegment> segments = new ArrayList<>();
        for (Shard shard : shards.all()) {
            try {
                OptionalInt streamId = shard.streams().readId(stream);
                if (streamId.isPresent()) {
                    segments.addAll(shard.require()
                            .read(c -> shard.tables().retention().plan(c, shard.number(), streamId.getAsInt())));
                }
            } catch (SQLException e) {
                throw new EventSqlException(
                        "The retention of stream " + name + " on " + shard + " could not be read: " + e.getMessage(),
                        e);
            }
        }
        return segments;
    }

    /** See {@link io.eventsql.EventSql#retentionStatus}. */
    public RetentionStatus status(int number) {
        Shard shard = shards.get(number);
        try {
            return shard.require().read(c -> shard.tables().retention().status(c, number));
        } catch (SQLException e) {
            throw new EventSqlException(
                    "The state of retention on " + shard + " could not be read: " + e.getMessage(), e);
        }
    }
}
