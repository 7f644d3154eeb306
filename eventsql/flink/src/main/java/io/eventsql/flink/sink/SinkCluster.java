package io.eventsql.flink.sink;

import io.eventsql.flink.sink.KeyRoutes.PartitionMap;
import io.eventsql.flink.sink.SinkDatabase.WrongDatabaseException;
import io.eventsql.flink.sink.SinkSql.Identity;
import java.sql.SQLException;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
    private @Nullable Identity cluster;
    /** The index of the database that responded last. */
    private int responsive;

    SinkCluster(SinkSettings settings) {
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
     * Returns where the events of a stream go now. One database that responds is enough: all shards have the same partitions.
     *
     * @throws SQLException of one that does not respond, if none does
     */
    KeyRoutes findRoutes(String stream) throws SQLException {
        SQLException failure = null;
        for (int i = 0; i < databases.size(); i++) {
            int index = (responsive + i) % databases.size();
            SinkDatabase database = databases.get(index);
            try {
                Identity identity = database.findIdentity();
                confirm(identity, database);
                int partitions = database.findPartitions(stream);
                if (partitions > 0) {
                    responsive = index;
                    PartitionMap map = new PartitionMap(identity.mapVersion(), partitions);
                    return new KeyRoutes(
                            identity.slotMap(),
                            Collections.nCopies(identity.names().size(), map));
                }
            } catch (WrongDatabaseException e) {
                throw e;
            } catch (SQLException e) {
                failure = e;
            }
        }
        throw failure != null ? failure : new WrongDatabaseException("Stream " + stream + " does not exist");
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
        if (identity.names().size() != databases.size()) {
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
