package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.ShardIdentityException;
import io.eventsql.ShardInfo;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.sql.ShardTable;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The shards of the cluster, by number. Thread-safe. */
public final class Shards {
    private static final Logger LOG = LoggerFactory.getLogger(Shards.class);

    private final ShardOpener opener;
    private final Tables tables;
    private final ShardIdentity cluster;
    private final List<Shard> shards;
    /** Databases that have not answered yet. */
    private final List<Database> missing = new ArrayList<>();
    /** The names of the shards whose owner has named them. */
    private final Map<Database, String> givenNames = new HashMap<>();

    private Shards(
            ShardOpener opener,
            List<Database> databases,
            List<String> names,
            List<@Nullable ShardIdentity> identities,
            Tables tables) {
        this.opener = opener;
        this.tables = tables;
        this.cluster =
                identities.stream().flatMap(Stream::ofNullable).findFirst().orElseThrow();
        if (cluster.shards() != databases.size()) {
            throw new ShardIdentityException("The cluster " + cluster.clusterId() + " has " + cluster.shards()
                    + " shards " + cluster.names() + ", but " + databases.size() + " databases are given");
        }
        Shard[] byNumber = new Shard[cluster.shards()];
        Arrays.setAll(byNumber, number -> new Shard(cluster, number, tables));
        this.shards = List.of(byNumber);
        for (int i = 0; i < names.size(); i++) {
            givenNames.put(databases.get(i), names.get(i));
        }
        for (int i = 0; i < databases.size(); i++) {
            @Nullable ShardIdentity identity = identities.get(i);
            if (identity == null) {
                missing.add(databases.get(i));
            } else {
                accept(databases.get(i), identity);
            }
        }
    }

    /**
     * Opens the databases, in any order.
     *
     * @throws ShardIdentityException if a database is not what it is used as
     * @throws EventSqlException if the cluster cannot be known because of databases that do not answer
     */
    public static Shards open(List<DataSource> dataSources, Settings settings) {
        return open(dataSources, List.of(), settings);
    }

    /**
     * Opens the databases, in any order.
     *
     * @param names the names of the shards in the order of the data sources; empty: those recorded in the databases
     * @throws ShardIdentityException if a database is not what it is used as
     * @throws EventSqlException if the cluster cannot be known because of databases that do not answer
     */
    public static Shards open(List<DataSource> dataSources, List<String> names, Settings settings) {
        SqlSchema schema = new SqlSchema(settings.schema());
        ShardOpener opener = new ShardOpener(new Migrator(schema, settings.migrateSchema()), new ShardTable(schema));
        List<Database> databases = dataSources.stream()
                .map(dataSource -> new Database(dataSource, settings.networkTimeout()))
                .toList();
        return new Shards(opener, databases, names, opener.open(databases), Tables.in(schema));
    }

    /** All shards, by number. */
    public List<Shard> all() {
        return shards;
    }

    /** The same in all databases of the cluster. */
    public UUID clusterId() {
        return cluster.clusterId();
    }

    /** The statements, written for the schema of this instance. */
    public Tables tables() {
        return tables;
    }

    /** Brings a database that is no shard to what its outbox needs. */
    public void migrateOutbox(Database database) throws SQLException {
        opener.migrateOutbox(database);
    }

    public int size() {
        return shards.size();
    }

    public Shard get(int number) {
        return shards.get(number);
    }

    /** The shard that holds a slot's keys. */
    public Shard ofSlot(int slot) {
        return shards.get(cluster.slotMap()[slot]);
    }

    /** The shard whose database this is, once it has answered. */
    public Optional<Shard> of(DataSource dataSource) {
        return shards.stream()
                .filter(s ->
                        s.database().map(d -> d.dataSource().equals(dataSource)).orElse(false))
                .findFirst();
    }

    /** The shards that have answered. */
    public List<ShardInfo> infos() {
        List<ShardInfo> infos = new ArrayList<>();
        for (Shard shard : shards) {
            shard.database().ifPresent(d -> infos.add(new ShardInfo(shard.number(), shard.name(), d.dataSource())));
        }
        return infos;
    }

    /**
     * Tries the databases that have not answered yet once more.
     */
    private synchronized void openMissing() {
        missing.removeIf(database -> {
            try {
                ShardIdentity identity = opener.identity(database)
                        .orElseThrow(() -> new ShardIdentityException("The database has no identity"));
                accept(database, identity);
                LOG.info("Shard {} answers now", shards.get(identity.number()));
                return true;
            } catch (ShardIdentityException e) {
                LOG.error("A database that answers only now is refused: {}", e.getMessage());
                return true;
            } catch (SQLException | EventSqlException e) {
                LOG.debug("still no answer", e);
                return false;
            }
        });
    }

    /** Goes on trying until every database has answered. */
    public void openMissingInBackground(long everyMs) {
        if (hasMissing()) {
            shards.get(0).inBackground(everyMs, () -> {
                try {
                    openMissing();
                } finally {
                    openMissingInBackground(everyMs);
                }
            });
        }
    }

    private synchronized boolean hasMissing() {
        return !missing.isEmpty();
    }

    /** Ends the shards' background work and waits briefly for what is in progress. */
    public void close() {
        close(System.nanoTime() + TimeUnit.SECONDS.toNanos(2));
    }

    /** Ends the shards' background work and waits for what is in progress, at most until the deadline. */
    public void close(long deadlineNanos) {
        shards.forEach(Shard::endBackground);
        shards.forEach(shard -> shard.awaitBackgroundEnd(deadlineNanos));
    }

    private void accept(Database database, ShardIdentity identity) {
        if (!cluster.sameCluster(identity)) {
            throw new ShardIdentityException("A database says it is shard " + identity.name() + " of cluster "
                    + identity.clusterId() + " (map version " + identity.mapVersion() + ", shards " + identity.names()
                    + "), but another is of cluster " + cluster.clusterId() + " (map version " + cluster.mapVersion()
                    + ", shards " + cluster.names() + ")");
        }
        Shard shard = shards.get(identity.number());
        if (shard.database().isPresent()) {
            throw new ShardIdentityException("Two databases say they are shard " + identity.name() + " of cluster "
                    + cluster.clusterId() + ": one is a copy of the other");
        }
        shard.found(database, givenNames.getOrDefault(database, identity.name()));
    }
}
