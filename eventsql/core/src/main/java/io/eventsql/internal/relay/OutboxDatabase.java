package io.eventsql.internal.relay;

import io.eventsql.ShardIdentityException;
import io.eventsql.internal.shard.OutboxTables;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.ShardIdentity;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/**
 * A database with an outbox: a shard's, or one that has nothing else. It may not have been reachable yet. Thread-safe.
 */
final class OutboxDatabase {
    private final Shards shards;
    private final OutboxTables tables;
    private final String name;
    private final @Nullable Shard shard;
    private final @Nullable Database apart;
    private volatile State state = State.UNKNOWN;
    private volatile @Nullable String url;

    private enum State {
        /** It has not answered yet. */
        UNKNOWN,
        READY,
        /** It turned out to be one of the shards, whose outbox is served already. */
        SHARD
    }

    private OutboxDatabase(
            Shards shards, OutboxTables tables, String name, @Nullable Shard shard, @Nullable Database apart) {
        this.shards = shards;
        this.tables = tables;
        this.name = name;
        this.shard = shard;
        this.apart = apart;
    }

    /** The outbox of a shard. */
    static OutboxDatabase of(Shards shards, Shard shard) {
        return new OutboxDatabase(shards, shard.tables().outbox(), shard.name(), shard, null);
    }

    /** The outbox of a database that is no shard. */
    static OutboxDatabase of(Shards shards, OutboxTables tables, String name, Database database) {
        return new OutboxDatabase(shards, tables, name, null, database);
    }

    /**
     * Makes it ready, if it answers.
     *
     * @throws ShardIdentityException if it belongs to another cluster
     * @throws SQLException if it does not answer
     */
    void open() throws SQLException {
        if (state != State.UNKNOWN) {
            return;
        }
        url = database().call(OutboxDatabase::url);
        if (apart != null) {
            Optional<ShardIdentity> identity = apart.call(tables.relay()::shardIdentity);
            if (identity.isPresent()) {
                requireSameCluster(identity.get().clusterId());
                state = State.SHARD;
                return;
            }
            shards.migrateOutbox(apart);
        }
        requireSameCluster(database().transaction(c -> tables.relay().claim(c, shards.clusterId())));
        state = State.READY;
    }

    private void requireSameCluster(UUID found) {
        if (!shards.clusterId().equals(found)) {
            throw new ShardIdentityException("The outbox " + name + " belongs to cluster " + found + ", not to "
                    + shards.clusterId() + ": its events are for other streams");
        }
    }

    /** The connection's address, without parameters. */
    static String url(Connection connection) throws SQLException {
        String url = connection.getMetaData().getURL();
        int parameters = url.indexOf('?');
        return parameters < 0 ? url : url.substring(0, parameters);
    }

    /** Whether its own connections have this address. */
    boolean hasUrl(String connectionUrl) {
        return connectionUrl.equals(url);
    }

    boolean isReady() {
        return state == State.READY;
    }

    /** Whether it is a shard that was given as an outbox, too: nothing is to be done for it. */
    boolean isServedAlready() {
        return state == State.SHARD;
    }

    /** The shard that this database is; {@code null} if it is none. */
    @Nullable
    Shard shard() {
        return shard;
    }

    OutboxTables tables() {
        return tables;
    }

    /** Its database; only once it is ready. */
    Database database() throws SQLTransientConnectionException {
        if (apart != null) {
            return apart;
        }
        if (shard == null) {
            throw new IllegalStateException("an outbox is a shard's or apart");
        }
        return shard.require();
    }

    /** The user's data source. */
    DataSource dataSource() throws SQLTransientConnectionException {
        return database().dataSource();
    }

    /** The shards whose events from here go through the transfer table. */
    List<Integer> otherShards() {
        return shards.all().stream()
                .filter(other -> other != shard)
                .map(Shard::number)
                .toList();
    }

    @Override
    public String toString() {
        return name;
    }
}
