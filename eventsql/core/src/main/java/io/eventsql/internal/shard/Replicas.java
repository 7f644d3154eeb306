package io.eventsql.internal.shard;

import io.eventsql.ReplicaStatus;
import io.eventsql.Settings;
import io.eventsql.internal.sql.Database;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import javax.sql.DataSource;

/** The replicas of the shards. Thread-safe. */
public final class Replicas {
    private final Map<DataSource, DataSource> dataSources;
    private final Settings settings;
    private final Map<Shard, Replica> started = new HashMap<>();
    private boolean closed;

    /** @param dataSources that of the replica by that of its shard */
    public Replicas(Map<DataSource, DataSource> dataSources, Settings settings) {
        this.dataSources = Map.copyOf(dataSources);
        this.settings = settings;
    }

    /** Returns whether no shard has a replica. */
    public boolean isEmpty() {
        return dataSources.isEmpty();
    }

    /** Returns the replica of a shard; empty if none is given, or if the shard has not been reached yet. */
    public synchronized Optional<Replica> of(Shard shard) {
        if (dataSources.isEmpty() || closed) {
            return Optional.empty();
        }
        return shard.database()
                .map(database -> dataSources.get(database.dataSource()))
                .map(dataSource -> started.computeIfAbsent(shard, s -> start(s, dataSource)));
    }

    private Replica start(Shard shard, DataSource dataSource) {
        Replica replica =
                new Replica(shard, new Database(dataSource, settings.networkTimeout()), settings.maxReplicaLag());
        replica.start();
        return replica;
    }

    /** Returns the state of the replicas of the shards that have been reached, by shard. */
    public synchronized List<ReplicaStatus> status() {
        return started.values().stream()
                .map(Replica::status)
                .sorted(Comparator.comparingInt(ReplicaStatus::shard))
                .toList();
    }

    /** Stops watching the replicas. */
    public void close(long deadlineNanos) throws InterruptedException {
        List<Replica> ending;
        synchronized (this) {
            closed = true;
            ending = new ArrayList<>(started.values());
        }
        ending.forEach(Replica::beginClose);
        for (Replica replica : ending) {
            replica.awaitClosed(deadlineNanos);
        }
    }
}
