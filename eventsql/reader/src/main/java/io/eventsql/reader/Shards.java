package io.eventsql.reader;

import io.eventsql.reader.ReaderSql.Identity;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * The shards of a cluster by their numbers, whatever the order of their data sources: the databases know who they are. One
 * that is unavailable at first is identified when it responds. Thread-safe.
 */
final class Shards implements AutoCloseable {
    private final List<ShardDatabase> databases;
    private final List<ShardDatabase> unidentified;
    private final Map<Integer, ShardDatabase> identified = new TreeMap<>();
    private @Nullable Identity cluster;
    /** Locked while databases are asked who they are, before this object: who needs another one does not wait for them. */
    private final Object identifying = new Object();

    Shards(List<? extends DataSource> dataSources, ReaderSql sql, ReaderSettings settings) {
        databases = dataSources.stream()
                .map(dataSource -> new ShardDatabase(dataSource, sql, settings))
                .toList();
        unidentified = new ArrayList<>(databases);
    }

    /** Returns the number of shards of the cluster, with those that have no events and whose databases are not given. */
    synchronized int size() {
        Identity known = cluster;
        return known == null ? databases.size() : known.names().size();
    }

    /** Returns whether the database of a shard is not given, because it has no events. */
    synchronized boolean isOmitted(int number) {
        return number >= 0 && number < size() && unidentified.isEmpty() && !identified.containsKey(number);
    }

    /**
     * Remembers what a shard has said later: shards may have been added.
     *
     * @throws ShardIdentityException if shards have events by now whose databases are not given
     */
    synchronized void learn(Identity identity) {
        Identity known = cluster;
        if (known == null || identity.names().size() >= known.names().size()) {
            cluster = identity;
        }
        requireAll(identity);
    }

    private void requireAll(Identity identity) {
        long lacking = IntStream.range(0, identity.names().size())
                .filter(number -> !identity.unused().contains(number) && !identified.containsKey(number))
                .count();
        if (lacking > unidentified.size() || databases.size() > identity.names().size()) {
            throw new ShardIdentityException("The cluster " + identity.cluster() + " has the shards " + identity.names()
                    + ", but " + databases.size() + " databases are given");
        }
    }

    /**
     * Connects to the databases.
     *
     * @throws DatabaseUnavailableException if none responds
     */
    void open() {
        DatabaseUnavailableException failure = identify();
        if (failure != null && !isAnyIdentified()) {
            throw failure;
        }
    }

    private synchronized boolean isAnyIdentified() {
        return !identified.isEmpty();
    }

    /**
     * Returns a shard. Waits only if it has not been reached yet.
     *
     * @throws DatabaseUnavailableException if it does not respond
     */
    ShardDatabase require(int number) {
        ShardDatabase shard = find(number);
        if (shard != null) {
            return shard;
        }
        DatabaseUnavailableException failure = identify();
        shard = find(number);
        if (shard == null) {
            throw new DatabaseUnavailableException("Shard " + number + " has not been reached yet", failure);
        }
        return shard;
    }

    private synchronized @Nullable ShardDatabase find(int number) {
        if (number < 0 || number >= size()) {
            throw new IllegalArgumentException("shard must be between 0 and " + (size() - 1) + ", but is " + number);
        }
        return identified.get(number);
    }

    /** Asks the remaining databases who they are. Returns the failure of one that does not respond. */
    private @Nullable DatabaseUnavailableException identify() {
        DatabaseUnavailableException failure = null;
        synchronized (identifying) {
            for (ShardDatabase database : remaining()) {
                try {
                    confirm(database.identity(), database);
                } catch (DatabaseUnavailableException e) {
                    failure = e;
                }
            }
        }
        return failure;
    }

    private synchronized List<ShardDatabase> remaining() {
        return List.copyOf(unidentified);
    }

    private synchronized void confirm(Identity identity, ShardDatabase database) {
        Identity known = cluster;
        if (known != null && !known.isSameCluster(identity)) {
            throw new ShardIdentityException("The databases belong to the clusters " + known.cluster() + " with shards "
                    + known.names() + " and " + identity.cluster() + " with shards " + identity.names());
        }
        requireAll(identity);
        if (identified.containsKey(identity.shard())) {
            throw new ShardIdentityException("Two of the databases are shard " + identity.shard() + " ("
                    + identity.names().get(identity.shard()) + ")");
        }
        if (known == null || identity.names().size() >= known.names().size()) {
            cluster = identity;
        }
        identified.put(identity.shard(), database);
        unidentified.remove(database);
    }

    @Override
    public void close() {
        databases.forEach(ShardDatabase::close);
    }
}
