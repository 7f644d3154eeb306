package io.eventsql.internal.retain;

import io.eventsql.CompactionStatus;
import io.eventsql.EventSqlException;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import java.sql.SQLException;

/** Reads what compaction has done. Thread-safe. */
public record CompactionReader(Shards shards) {
    /** See {@link io.eventsql.EventSql#compactionStatus}. */
    public CompactionStatus status(int number) {
        Shard shard = shards.get(number);
        try {
            return shard.require().read(c -> shard.tables().compaction().status(c, number));
        } catch (SQLException e) {
            throw new EventSqlException(
                    "The state of compaction on " + shard + " could not be read: " + e.getMessage(), e);
        }
    }
}
