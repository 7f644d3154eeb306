package io.eventsql.flink.sink;

import io.eventsql.flink.sink.KeyRoutes.PartitionMap;
import io.eventsql.flink.sink.SinkDatabase.WrongDatabaseException;
import io.eventsql.flink.sink.SinkSql.Identity;
import io.eventsql.flink.sink.SinkSql.StoredMap;
import java.sql.SQLException;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * The databases of a cluster by the numbers of their shards: the databases know who they are. One that is unavailable at first is
 * identified when it responds. Used by one thread.
 */
final class SinkCluster implements AutoCloseable {
    private static final String APPLICATION_NAME = "eventsql-flink-sink";
    private static final int MS_PER_SECOND = 1_000;

    private final List<SinkDatabase> databases;
    private final Map<Integer, SinkDatabase> shards = new HashMap<>();
    private final String stream;
    /** The maps of the stream, as they were read last. */
    private final Map<Integer, PartitionMap> maps = new HashMap<>();
    /**
     * The slot map of the stream as it was read last, if its keys stay while those of others move, which they do until it
     * is deleted; empty: that of the cluster.
     */
    private List<Integer> ownSlotMap = List.of();

    private @Nullable Identity cluster;

    SinkCluster(SinkSettings settings) {
        stream = settings.stream();
        SinkSql sql = new SinkSql(settings.schema());
        int networkTimeoutMs = Math.toIntExact(settings.networkTimeout().toMillis());
        databases = settings.urls().stream()
                .map(url -> {
                    PGSimpleDataSource dataSource = new PGSimpleDataSource();
                    dataSource.setApplicationName(APPLICATION_NAME);
                    dataSource.setTcpKeepAlive(true);
                    // Until the connection is there; the network timeout follows.
                    dataSource.setSocketTimeout(Math.max(1, networkTimeoutMs / MS_PER_SECOND));
                    dataSource.setUrl(url);
                    dataSource.setUser(settings.user());
                    dataSource.setPassword(settings.password());
                    return new SinkDatabase(dataSource, sql, networkTimeoutMs);
                })
                .toList();
    }

    /**
     * Returns where the events of the stream go now. One database that responds is enough: a shard that does not keeps the map
     * that was read last.
     *
     * @throws SQLException of one that does not respond, if none does
     */
    KeyRoutes findRoutes() throws SQLException {
        SQLException failure = null;
        Identity identity = null;
        List<Integer> own = List.of();
        boolean isCertain = false;
        for (SinkDatabase database : databases) {
            try {
                Identity found = database.findIdentity();
                confirm(found, database);
                Optional<StoredMap> map = database.findMap(stream);
                if (map.isPresent()) {
                    maps.put(found.shard(), map.get().map());
                    own = map.get().slotMap().isEmpty() ? own : map.get().slotMap();
                    isCertain |= found.slotMap().contains(found.shard()); // a spare shard does not record what stays
                    identity = found;
                }
            } catch (WrongDatabaseException e) {
                throw e;
            } catch (SQLException e) {
                failure = e;
            }
        }
        if (identity == null) {
            throw failure != null ? failure : new WrongDatabaseException("Stream " + stream + " does not exist");
        }
        if (isCertain || !own.isEmpty()) {
            ownSlotMap = own;
        }
        return routes(ownSlotMap.isEmpty() ? identity.slotMap() : ownSlotMap, maps);
    }

    /**
     * Returns where the events of a batch go that a shard has rejected because of its map: by the map that followed. So the parts
     * of a batch are the same whenever it is routed anew, also when the map has changed several times.
     */
    KeyRoutes findNextRoutes(EventBatch batch) throws SQLException {
        int number = batch.target().shard();
        SinkDatabase database = shard(number);
        List<Integer> slotMap = database.findIdentity().slotMap();
        StoredMap next = database.findNextMap(batch.stream(), batch.mapVersion());
        return routes(next.slotMap().isEmpty() ? slotMap : next.slotMap(), Map.of(number, next.map()));
    }

    private static KeyRoutes routes(List<Integer> slotMap, Map<Integer, PartitionMap> maps) {
        Set<Integer> withSlots = Set.copyOf(slotMap);
        return new KeyRoutes(
                slotMap,
                IntStream.rangeClosed(0, Collections.max(withSlots))
                        .mapToObj(number -> withSlots.contains(number)
                                ? maps.getOrDefault(number, PartitionMap.UNREAD)
                                : PartitionMap.NO_SLOTS)
                        .toList());
    }

    /**
     * Returns the database of a shard.
     *
     * @throws SQLException if it has not been identified yet, because a database does not respond
     */
    SinkDatabase shard(int number) throws SQLException {
        SinkDatabase known = shards.get(number);
        if (known != null) {
            return known;
        }
        SQLException failure = null;
        Set<SinkDatabase> identified = new HashSet<>(shards.values());
        for (SinkDatabase database : databases) {
            if (!identified.contains(database)) {
                try {
                    confirm(database.findIdentity(), database);
                } catch (WrongDatabaseException e) {
                    throw e;
                } catch (SQLException e) {
                    failure = e;
                }
            }
        }
        known = shards.get(number);
        if (known != null) {
            return known;
        }
        throw failure != null ? failure : new WrongDatabaseException("The cluster has no shard " + number);
    }

    private void confirm(Identity identity, SinkDatabase database) throws SQLException {
        Identity known = cluster;
        if (known != null && !known.isSameCluster(identity)) {
            throw new WrongDatabaseException("The databases belong to the clusters " + known.cluster() + " with shards "
                    + known.names() + " and " + identity.cluster() + " with shards " + identity.names());
        }
        if (databases.size() < identity.names().size() - identity.unused()
                || databases.size() > identity.names().size()) {
            throw new WrongDatabaseException("The cluster " + identity.cluster() + " has the shards " + identity.names()
                    + ", but " + databases.size() + " databases are given");
        }
        SinkDatabase other = shards.putIfAbsent(identity.shard(), database);
        if (other != null && other != database) {
            throw new WrongDatabaseException("Two of the databases are shard " + identity.shard() + " ("
                    + identity.names().get(identity.shard()) + ")");
        }
        cluster = identity;
    }

    @Override
    public void close() {
        databases.forEach(SinkDatabase::close);
    }
}
