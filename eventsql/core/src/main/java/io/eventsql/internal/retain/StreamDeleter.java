package io.eventsql.internal.retain;

import io.eventsql.ClearPreview;
import io.eventsql.DeletePreview;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.UnknownStreamException;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.DeleteStatements;
import io.eventsql.internal.sql.PartitionTable.Head;
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Deletes streams. On every shard the rows of the stream are deleted, then its tables are dropped. After the first step the
 * stream does not exist any more, and an interrupted deletion is completed by a repeated call. Thread-safe.
 */
public final class StreamDeleter {
    private final Shards shards;
    private final StreamRegistry streams;
    private final StreamCleaner.ScheduledDeletion scheduled;

    public StreamDeleter(Shards shards, StreamRegistry streams, StreamCleaner.ScheduledDeletion scheduled) {
        this.shards = shards;
        this.streams = streams;
        this.scheduled = scheduled;
    }

    /**
     * Returns what deleting would delete, and the confirmation that {@link #delete} requires.
     *
     * @throws UnknownStreamException if no shard has the stream or tables of it
     */
    public DeletePreview preview(String name) {
        shards.requireAllGiven("Stream " + name + " could not be deleted");
        boolean exists = false;
        List<ClearPreview.ShardContent> contents = new ArrayList<>();
        Set<String> consumers = new TreeSet<>();
        StringBuilder state = new StringBuilder("delete " + shards.clusterId() + " " + name);
        for (Shard shard : shards.all()) {
            try {
                Optional<StreamTable.Row> stream = shard.streams().find(name);
                DeleteStatements deleting = shard.tables().deleting();
                exists |= stream.isPresent() || shard.require().read(c -> deleting.hasBegun(c, name));
                List<Head> heads = stream.isEmpty()
                        ? List.of()
                        : StreamCleaner.readHeads(shard, stream.get().id());
                heads.stream()
                        .map(Head::streamId)
                        .distinct()
                        .forEach(id -> state.append(' ').append(id));
                contents.add(StreamCleaner.readContent(shard, heads));
                consumers.addAll(shard.require().read(c -> deleting.findConsumers(c, name)));
            } catch (SQLException e) {
                throw new EventSqlException(
                        "The content of stream " + name + " on " + shard + " could not be determined: "
                                + e.getMessage(),
                        e);
            }
        }
        if (!exists) {
            throw new UnknownStreamException(name);
        }
        return new DeletePreview(name, contents, List.copyOf(consumers), StreamCleaner.confirmation(state.toString()));
    }

    /**
     * Deletes a stream.
     *
     * @return how many events there were on all shards when the call started
     */
    public long delete(String name, String confirmation) {
        DeletePreview now = preview(name);
        if (!now.confirmation().equals(confirmation)) {
            throw new InvalidInputException(
                    "confirmation",
                    "does not match stream " + name + " as it is now; request a new preview and confirm that");
        }
        for (Shard shard : shards.all()) {
            StreamCleaner.retry(failure(name, shard), () -> requireUnused(shard, name));
        }
        for (Shard shard : shards.all()) {
            StreamCleaner.retry(failure(name, shard), () -> begin(shard, name));
        }
        StreamCleaner.deleteScheduled(
                name, scheduled); // of what is scheduled from now on, the database rejects the stream
        for (Shard shard : shards.all()) {
            boolean[] more = {true};
            while (more[0]) {
                StreamCleaner.retry(failure(name, shard), () -> more[0] = dropTables(shard, name));
            }
        }
        return now.events();
    }

    private static String failure(String name, Shard shard) {
        return "Stream " + name + " could not be deleted on " + shard;
    }

    private static void requireUnused(Shard shard, String name) throws SQLException {
        Optional<String> obstacle =
                shard.require().read(c -> shard.tables().deleting().findObstacle(c, name));
        if (obstacle.isPresent()) {
            throw new EventSqlException(
                    "Stream " + name + " cannot be deleted while it is in use on " + shard + ": " + obstacle.get());
        }
    }

    private void begin(Shard shard, String name) throws SQLException {
        shard.require().transaction(c -> {
            shard.require().allowLongStatements(c); // the rows of thousands of segments
            shard.tables().deleting().begin(c, name);
            return name;
        });
        shard.forgetDeletedStream(name);
        streams.forget(name);
    }

    private static boolean dropTables(Shard shard, String name) throws SQLException {
        return shard.require().transaction(c -> {
            shard.require().allowLongStatements(c); // a table of many gigabytes
            return shard.tables().deleting().dropTables(c, name);
        });
    }
}
