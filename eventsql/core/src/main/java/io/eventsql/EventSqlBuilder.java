package io.eventsql;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Builds an {@link EventSql} instance; not thread-safe. */
public final class EventSqlBuilder {
    private static final int SHARDS_MAX = 1_024;

    final List<DataSource> dataSources;
    /** In the order of the data sources; empty: the names recorded in the databases. */
    final List<String> shardNames;

    Settings settings = Settings.defaults();
    final List<ConsumerListener> listeners = new ArrayList<>();
    final List<PublishListener> publishListeners = new ArrayList<>();

    @Nullable
    DataSource preferredShard;

    /** Each data source once, in the order in which they were given. */
    final Set<DataSource> outboxes = new LinkedHashSet<>();

    boolean addShards;
    /** The data source of a replica by that of its shard. */
    final Map<DataSource, DataSource> replicas = new HashMap<>();

    EventSqlBuilder(List<? extends DataSource> dataSources, List<String> shardNames) {
        this.dataSources = List.copyOf(dataSources);
        this.shardNames = List.copyOf(shardNames);
        InvalidInputException.requireRange("dataSources", dataSources.size(), 1, SHARDS_MAX);
    }

    /**
     * Adds databases that are new, next to all of the cluster's own, as further shards, numbered in their order. No key belongs to them until {@link
     * EventSql#moveShards} moves some. Processes that are not given the databases continue as before; once keys have moved, they
     * cannot publish those. Without this, a new database next to those of a cluster is rejected.
     */
    public EventSqlBuilder addShards() {
        addShards = true;
        return this;
    }

    /** Sets all settings; without this, the defaults apply. */
    public EventSqlBuilder settings(Settings value) {
        settings = InvalidInputException.requireGiven("settings", value);
        return this;
    }

    /** Adds callbacks for the consumers of this process. */
    public EventSqlBuilder listener(ConsumerListener value) {
        listeners.add(InvalidInputException.requireGiven("listener", value));
        return this;
    }

    /** Adds callbacks for the events that this process publishes. */
    public EventSqlBuilder publishListener(PublishListener value) {
        publishListeners.add(InvalidInputException.requireGiven("publishListener", value));
        return this;
    }

    /**
     * Sets the shard that receives events without a key while it is healthy. Without this, they go to the healthy
     * shards in turn.
     *
     * @param value one of the shards' data sources
     */
    public EventSqlBuilder preferredShard(DataSource value) {
        InvalidInputException.requireGiven("preferredShard", value);
        if (!dataSources.contains(value)) {
            throw new InvalidInputException("preferredShard", "must be the data source of a shard");
        }
        preferredShard = value;
        return this;
    }

    /**
     * Adds standalone outboxes: databases other than the shards, such as the application's own, in whose
     * transactions events are published ({@link EventSql#outbox()}). The tables of the outbox are created in each of
     * them, in the same schema; every process that names the database can relay it. A shard always has an outbox;
     * naming one has no effect. May be called repeatedly; a data source that was given before is not added again.
     *
     * @param values preferably connection pools
     */
    public EventSqlBuilder outbox(DataSource... values) {
        InvalidInputException.requireGiven("outboxes", values);
        for (int i = 0; i < values.length; i++) {
            InvalidInputException.requireGiven("outboxes[" + i + "]", values[i]);
        }
        Collections.addAll(outboxes, values);
        return this;
    }

    /**
     * Sets the replica of a shard, which consumers and {@link EventSql#read(EventPosition, int, ReadFrom)} read from that ask for
     * it: one hot standby or several, behind a URL of several hosts such as
     * {@code jdbc:postgresql://standby1,standby2/orders?targetServerType=preferSecondary&loadBalanceHosts=true}. Nothing is
     * written to it, and it may be unavailable. This instance writes a row to the shard at the interval at which it measures the
     * replica's lag ({@link Settings#maxReplicaLag()}).
     *
     * @param shard one of the shards' data sources
     * @param replica preferably a connection pool, whose timeout for a connection is below {@link Settings#maxReplicaLag()}
     */
    public EventSqlBuilder replica(DataSource shard, DataSource replica) {
        InvalidInputException.requireGiven("replica.shard", shard);
        InvalidInputException.requireGiven("replica", replica);
        if (!dataSources.contains(shard)) {
            throw new InvalidInputException("replica.shard", "must be the data source of a shard");
        }
        if (dataSources.contains(replica)) {
            throw new InvalidInputException("replica", "must not be the data source of a shard");
        }
        replicas.put(shard, replica);
        return this;
    }

    List<DataSource> withOutbox() {
        return Stream.concat(dataSources.stream(), outboxes.stream()).distinct().toList();
    }

    /**
     * Opens the databases and migrates their schema. An unavailable shard is used as soon as it becomes available, if
     * the cluster is recorded in the other databases.
     *
     * @throws ShardIdentityException if a database is not the shard it is used as
     * @throws EventSqlException if the cluster cannot be determined or created
     */
    public EventSql build() {
        return new EventSql(this);
    }
}
