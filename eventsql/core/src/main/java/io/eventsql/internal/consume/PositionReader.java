package io.eventsql.internal.consume;

import io.eventsql.ConsumerPosition;
import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.ConsumerTable.Offset;
import io.eventsql.internal.sql.PartitionTable.Head;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;

/** Reads the committed offsets of a consumer and the heads that they are compared with. */
final class PositionReader {
    private PositionReader() {}

    /** Returns the positions by shard and partition; shards that do not know the consumer yet are left out. */
    static List<ConsumerPosition> read(Shards shards, StreamSpec stream, String consumer) {
        shards.requireAllGiven("Could not read the positions of consumer " + consumer + " of stream " + stream.name());
        List<ConsumerPosition> positions = new ArrayList<>();
        for (Shard shard : shards.all()) {
            try {
                OptionalInt streamId = shard.streams().readId(stream);
                if (streamId.isPresent()) {
                    positions.addAll(shard.require().read(c -> read(c, shard, streamId.getAsInt(), consumer)));
                }
            } catch (SQLException e) {
                throw new EventSqlException(
                        "Reading the positions of consumer " + consumer + " on " + shard + " failed: " + e.getMessage(),
                        e);
            }
        }
        return positions;
    }

    private static List<ConsumerPosition> read(Connection connection, Shard shard, int streamId, String consumer)
            throws SQLException {
        OptionalInt id = shard.tables().consumers().id(connection, streamId, consumer);
        if (id.isEmpty()) {
            return List.of();
        }
        // Offsets first: read in the other order, an offset could be beyond its head.
        List<Offset> offsets = shard.tables().consumers().offsets(connection, null, id.getAsInt());
        List<Head> heads = shard.tables().partitions().heads(connection, null, new int[] {streamId});
        return offsets.stream()
                .filter(o -> o.partition() < heads.size()) // it was removed since, with a growth that was cancelled
                .map(o -> {
                    Head head = heads.get(o.partition());
                    return new ConsumerPosition(
                            shard.number(), o.partition(), o.nextOffset(), head.head(), head.logStart(), o.epoch());
                })
                .toList();
    }
}
