package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.Settings;
import io.eventsql.ShardIdentityException;
import io.eventsql.ShardInfo;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.shard.ShardOpener.Opened;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.IncarnationTable;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.sql.ShardTable;
import io.eventsql.internal.sql.SqlSchema;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
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
    private final List<Database> databases;
    /** The databases that have not been reached yet. */
    private final List<Database> missing = new ArrayList<>();
    /** The names given to the shards by this process. */
    private final Map<Database, String> givenNames = new HashMap<>();

    private Shards(
            ShardOpener opener,
            List<Database> databases,
            List<String> names,
            List<@Nullable Opened> openedDatabases,
            Tables tables) {
        this.opener = opener;
        this.tables = tables;
        this.cluster = openedDatabases.stream()
                .flatMap(Stream::ofNullable)
                .findFirst()
                .orElseThrow()
                .identity();
        if (cluster.shards() != databases.size()) {
            throw new ShardIdentityException("The cluster " + cluster.clusterId() + " has " + cluster.shards()
                    + " shards " + cluster.names() + ", but " + databases.size() + " databases are given."
                    + " The shards of a cluster are fixed when it is created: give the data sources of all of them");
        }
        Shard[] byNumber = new Shard[cluster.shards()];
        Arrays.setAll(byNumber, number -> new Shard(cluster, number, tables));
        this.shards = List.of(byNumber);
        this.databases = List.copyOf(databases);
        for (int i = 0; i < names.size(); i++) {
            givenNames.put(databases.get(i), names.get(i));
        }
        for (int i = 0; i < databases.size(); i++) {
            @Nullable Opened opened = openedDatabases.get(i);
            if (opened == null) {
                missing.add(databases.get(i));
            } else {
                accept(databases.get(i), opened);
            }
        }
    }

    /**
     * Opens the databases, in any order.
     *
     * @throws ShardIdentityException if the databases do not form one cluster
     * @throws EventSqlException if the cluster cannot be determined or created because databases are unavailable
     */
    public static Shards open(List<DataSource> dataSources, Settings settings) {
        return open(dataSources, List.of(), settings);
    }

    /**
     * Opens the databases, in any order.
     *
     * @param names the names of the shards in the order of the data sources; empty: those recorded in the databases
     * @throws ShardIdentityException if the databases do not form one cluster
     * @throws EventSqlException if the cluster cannot be determined or created because databases are unavailable
     */
    public static Shards open(List<DataSource> dataSources, List<String> names, Settings settings) {
        SqlSchema schema = new SqlSchema(settings.schema());
        ShardOpener opener = new ShardOpener(
                new Migrator(schema, settings.migrateSchema()), new ShardTable(schema), new IncarnationTable(schema));
        List<Database> databases = dataSources.stream()
                .map(dataSource -> new Database(dataSource, settings.networkTimeout()))
                .toList();
        return new Shards(opener, databases, names, opener.open(databases, names), Tables.in(schema));
    }

    /** Returns all shards, by number. */
    public List<Shard> all() {
        return shards;
    }

    /** Returns the id that all databases of the cluster have recorded. */
    public UUID clusterId() {
        return cluster.clusterId();
    }

    /** The statements, written for the schema of this instance. */
    public Tables tables() {
        return tables;
    }

    /** Migrates a database that has an outbox but is not a shard. */
    public void migrateOutbox(Database database) throws SQLException {
        opener.migrateOutbox(database);
    }

    public int size() {
        return shards.size();
    }

    public Shard get(int number) {
        return shards.get(number);
    }

    /** Returns the shard that holds the keys of a slot. */
    public Shard ofSlot(int slot) {
        return shards.get(cluster.slotMap()[slot]);
    }

    /** Returns the shard of this data source; empty if there is none, or its database has not been reached yet. */
    public Optional<Shard> of(DataSource dataSource) {
        return shards.stream()
                .filter(s ->
                        s.database().map(d -> d.dataSource().equals(dataSource)).orElse(false))
                .findFirst();
    }

    /** Returns the data sources of all shards by name, also of those that have not been reached yet. */
    public Map<String, DataSource> dataSources() {
        Map<String, DataSource> named = new LinkedHashMap<>();
        for (int i = 0; i < databases.size(); i++) {
            Database database = databases.get(i);
            String unreached = givenNames.getOrDefault(database, "database " + (i + 1) + " of " + databases.size());
            String name = shards.stream()
                    .filter(shard -> shard.database().filter(database::equals).isPresent())
                    .findFirst()
                    .map(Shard::name)
                    .orElse(unreached);
            named.put(name, database.dataSource());
        }
        return named;
    }

    /** Returns the shards whose databases have been reached. */
    public List<ShardInfo> infos() {
        List<ShardInfo> infos = new ArrayList<>();
        for (Shard shard : shards) {
            shard.database().ifPresent(d -> infos.add(new ShardInfo(shard.number(), shard.name(), d.dataSource())));
        }
        return infos;
    }

    /** Opens the databases that have not been reached yet, as far as they are available now. */
    private synchronized void openMissing() {
        missing.removeIf(database -> {
            try {
                Opened opened = opener.openLate(database)
                        .orElseThrow(
                                () -> new ShardIdentityException("The database has no identity, so it is none of the"
                                        + " shards " + cluster.names() + " of cluster " + cluster.clusterId()));
                accept(database, opened);
                LOG.info("Shard {} is available", shards.get(opened.identity().number()));
                return true;
            } catch (ShardIdentityException e) {
                LOG.error("Rejected a shard that joined late: {}", e.getMessage());
                return true;
            } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
                LOG.debug("A database of the cluster is still unavailable", e);
                return false;
            }
        });
    }

    /** Retries in the background until every database has been reached. */
    public void openMissingInBackground(long intervalMs) {
        if (hasMissing()) {
            shards.get(0).inBackground(intervalMs, () -> {
                try {
                    openMissing();
                } finally {
                    openMissingInBackground(intervalMs);
                }
            });
        }
    }

    private synchronized boolean hasMissing() {
        return !missing.isEmpty();
    }

    /** Stops the shards' background threads and waits briefly for their current tasks. */
    public void close() {
        close(System.nanoTime() + TimeUnit.SECONDS.toNanos(2));
    }

    /** Stops the shards' background threads and waits for their current tasks, at most until the deadline. */
    public void close(long deadlineNanos) {
        shards.forEach(Shard::stopBackground);
        shards.forEach(shard -> shard.awaitBackgroundStop(deadlineNanos));
    }

    private void accept(Database database, Opened opened) {
        ShardIdentity identity = opened.identity();
        if (!cluster.sameCluster(identity)) {
            throw new ShardIdentityException("A database is shard " + identity.name() + " of " + describe(identity)
                    + ", but another is of " + describe(cluster));
        }
        Shard shard = shards.get(identity.number());
        if (shard.database().isPresent()) {
            throw new ShardIdentityException("Two databases are shard " + identity.name() + " of cluster "
                    + cluster.clusterId() + ": one is a copy of the other");
        }
        shard.attach(database, givenNames.getOrDefault(database, identity.name()), opened.incarnation());
    }

    private static String describe(ShardIdentity identity) {
        return "cluster " + identity.clusterId() + " (map version " + identity.mapVersion() + ", shards "
                + identity.names() + ", databases " + identity.databaseIds() + ")";
    }
}
