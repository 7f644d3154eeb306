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
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A database with an outbox: that of a shard, or a standalone one. It may not have been available yet. Thread-safe.
 */
final class OutboxDatabase {
    private static final Logger LOG = LoggerFactory.getLogger(OutboxDatabase.class);
    private static final int NO_SHARD = -1;

    private final Shards shards;
    private final OutboxTables tables;
    private final String name;
    private final @Nullable Shard shard;
    private final @Nullable Database standalone;
    private volatile State state = State.UNKNOWN;
    private volatile @Nullable String url;
    /** The number of the shard that the database of a standalone outbox is, without being one of this process. */
    private volatile int unusedShard = NO_SHARD;
    /** Whether events in the transfer table may be addressed to this shard, although no keys have moved. */
    private volatile boolean sendsToItself;

    private enum State {
        /** It has not been available yet. */
        UNKNOWN,
        READY,
        /** It was identified as a shard, whose outbox is already relayed. */
        SHARD
    }

    private OutboxDatabase(
            Shards shards, OutboxTables tables, String name, @Nullable Shard shard, @Nullable Database standalone) {
        this.shards = shards;
        this.tables = tables;
        this.name = name;
        this.shard = shard;
        this.standalone = standalone;
    }

    /** Returns the outbox of a shard. */
    static OutboxDatabase of(Shards shards, Shard shard) {
        return new OutboxDatabase(shards, shard.tables().outbox(), shard.name(), shard, null);
    }

    /** Returns a standalone outbox. */
    static OutboxDatabase of(Shards shards, OutboxTables tables, String name, Database database) {
        return new OutboxDatabase(shards, tables, name, null, database);
    }

    /**
     * Prepares the outbox, unless this was done before.
     *
     * @throws ShardIdentityException if it belongs to another cluster
     * @throws SQLException if the database is unavailable
     */
    void open() throws SQLException {
        if (state != State.UNKNOWN) {
            return;
        }
        url = database().call(OutboxDatabase::url);
        if (standalone != null) {
            standalone.checkIsolation("outbox " + name);
            Optional<ShardIdentity> identity = standalone.read(tables.relay()::shardIdentity);
            if (identity.isPresent()) {
                requireSameCluster(identity.get().clusterId());
                if (isRelayedAsShard(identity.get())) {
                    state = State.SHARD;
                    return;
                }
                unusedShard = identity.get().number();
            }
            shards.migrateOutbox(standalone);
        }
        requireSameCluster(database().transaction(c -> tables.relay().claim(c, shards.clusterId())));
        state = State.READY;
        if (unusedShard != NO_SHARD) {
            LOG.info("The database of {} is shard {}, which is not in use: relaying its outbox", name, unusedShard);
        }
    }

    /** Returns {@code false} for a shard that was removed, and for a spare one that this process was not given. */
    private boolean isRelayedAsShard(ShardIdentity identity) {
        boolean hasKeys = Arrays.stream(identity.slotMap()).anyMatch(owner -> owner == identity.number());
        return hasKeys || shards.all().stream().anyMatch(given -> given.number() == identity.number());
    }

    private void requireSameCluster(UUID found) {
        if (!shards.clusterId().equals(found)) {
            throw new ShardIdentityException("The outbox " + name + " belongs to cluster " + found + ", not to "
                    + shards.clusterId() + ", so its events belong to other streams");
        }
    }

    /** Returns the connection's URL without parameters. */
    static String url(Connection connection) throws SQLException {
        String url = connection.getMetaData().getURL();
        int parameters = url.indexOf('?');
        return parameters < 0 ? url : url.substring(0, parameters);
    }

    /** Returns whether its own connections have this URL. */
    boolean hasUrl(String connectionUrl) {
        return connectionUrl.equals(url);
    }

    boolean isReady() {
        return state == State.READY;
    }

    /**
     * Returns whether it is a shard that was also given as a standalone outbox: another relay already serves it, in this process
     * or, once keys have moved to a spare shard, in those that were given it as a shard.
     */
    boolean isDuplicate() {
        return state == State.SHARD
                || (unusedShard != NO_SHARD && shards.slots().hasSlots(unusedShard));
    }

    /** Returns the shard of this database; {@code null} if the outbox is standalone. */
    @Nullable
    Shard shard() {
        return shard;
    }

    OutboxTables tables() {
        return tables;
    }

    /** Returns its database. */
    Database database() throws SQLTransientConnectionException {
        if (standalone != null) {
            return standalone;
        }
        if (shard == null) {
            throw new IllegalStateException("the outbox is either a shard's or standalone");
        }
        return shard.require();
    }

    /** Returns the user's data source if the outbox is standalone. */
    Optional<DataSource> standaloneDataSource() {
        return Optional.ofNullable(standalone).map(Database::dataSource);
    }

    /** Returns the user's data source. */
    DataSource dataSource() throws SQLTransientConnectionException {
        return database().dataSource();
    }

    /**
     * Sets whether events in the transfer table may be addressed to this shard, although no keys have moved: those of a stream that it
     * could not get yet, and later ones of their keys.
     */
    void setSendsToItself(boolean value) {
        sendsToItself = value;
    }

    boolean sendsToItself() {
        return sendsToItself;
    }

    /**
     * Returns the numbers of the shards whose events go through the transfer table; once keys have moved, so may those of this one,
     * after events that have waited for another shard, and so do those of a stream that this one could not get yet.
     */
    List<Integer> otherShards() {
        return shards.all().stream()
                .filter(other -> other != shard || sendsToItself || shards.haveMoved())
                .map(Shard::number)
                .toList();
    }

    @Override
    public String toString() {
        return shard == null ? name : shard.name();
    }
}
