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
import io.eventsql.internal.sql.StreamTable;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The shards of the cluster, by number. Thread-safe. */
public final class Shards {
    private static final Logger LOG = LoggerFactory.getLogger(Shards.class);

    /** What is the matter with a shard of {@link #lacking()}, and what helps. */
    public static final String NOT_GIVEN = "not among the data sources of this process. Configure it, and restart";

    private final ShardOpener opener;
    private final Tables tables;
    private final ShardIdentity cluster;
    /** The shards that had no events when the databases were opened. */
    private final ShardIdentity.Unused unused;
    /** All shards of the cluster, by number. */
    private final List<Shard> numbered;
    /** Those whose databases are given. */
    private final List<Shard> shards;

    private final Map<Integer, Shard> addedLater = new ConcurrentHashMap<>();
    private final List<Consumer<Shard>> slotsLost = new CopyOnWriteArrayList<>();
    private final List<Consumer<String>> streamsSeen = new CopyOnWriteArrayList<>();
    private final StationaryStreams stationary = new StationaryStreams();
    private volatile SlotMap slots;
    private final List<Database> databases;
    /** The databases that have not been reached yet. */
    private final List<Database> missing = new ArrayList<>();
    /** Why databases were rejected that were reached late. */
    private final Set<String> rejections = new HashSet<>();
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
        List<ShardIdentity> known = openedDatabases.stream()
                .flatMap(Stream::ofNullable)
                .map(Opened::identity)
                .toList();
        this.cluster = known.stream()
                .max(Comparator.comparingInt(ShardIdentity::shards).thenComparingInt(ShardIdentity::finishedVersion))
                .orElseThrow();
        this.unused = ShardIdentity.Unused.of(known);
        Shard[] byNumber = new Shard[cluster.shards()];
        Arrays.setAll(byNumber, number -> new Shard(cluster, number, opener, tables));
        this.numbered = List.of(byNumber);
        this.slots = SlotMap.of(List.of(cluster), 0, Map.of());
        this.databases = List.copyOf(databases);
        for (int i = 0; i < names.size(); i++) {
            givenNames.put(databases.get(i), names.get(i));
        }
        for (int i = 0; i < databases.size(); i++) {
            @Nullable Opened opened = openedDatabases.get(i);
            if (opened == null) {
                missing.add(databases.get(i));
            } else if (unused.removed().contains(opened.identity().number())) {
                LOG.warn(
                        "Database {} of {} is shard {}, which was removed from the cluster: it is not used",
                        i + 1,
                        databases.size(),
                        opened.identity().name());
            } else {
                accept(databases.get(i), opened);
            }
        }
        learned();
        this.shards = chooseConfigured();
        for (Shard shard : numbered) {
            shard.onSlots(changed -> learned());
            shard.streams().onRead(row -> learned(shard.number(), row));
        }
    }

    /**
     * Returns the shards whose databases are given. A database that cannot be reached is one of those that are not, preferably one
     * in use. Shards that have no events need not be given.
     */
    private List<Shard> chooseConfigured() {
        List<Shard> unreached = numbered.stream()
                .filter(shard -> shard.database().isEmpty())
                .sorted(Comparator.comparing(shard -> !isUsed(shard)))
                .toList();
        List<Shard> omitted = unreached.subList(Math.min(missing.size(), unreached.size()), unreached.size());
        boolean isAmbiguous = !missing.isEmpty() && !omitted.isEmpty() && !isUsed(unreached.get(missing.size() - 1));
        if (omitted.stream().anyMatch(this::isUsed) || isAmbiguous || missing.size() > unreached.size()) {
            throw new ShardIdentityException("The cluster " + cluster.clusterId() + " has " + cluster.shards()
                    + " shards " + cluster.names() + ", but " + databases.size() + " databases are given."
                    + " Give the data sources of all shards that have events"
                    + (isAmbiguous ? ", and while a database is unavailable of all shards" : ""));
        }
        omitted.forEach(shard -> shard.setConfigured(false));
        return numbered.stream().filter(Shard::isConfigured).toList();
    }

    /** Returns whether the shard has slots, or may have events. */
    private boolean isUsed(Shard shard) {
        return slots.hasSlots(shard.number()) || !unused.contains(shard.number());
    }

    /** Puts together what the shards have said about the slots. */
    private void learned() {
        synchronized (slotsLost) { // not with this object's lock, which is held while databases are opened
            putTogether();
        }
    }

    private void putTogether() {
        List<ShardIdentity> known = numbered.stream()
                .filter(shard -> shard.database().isPresent())
                .map(Shard::identity)
                .toList();
        use(SlotMap.of(known.isEmpty() ? List.of(cluster) : known, slots.number() + 1, stationary.kept()));
    }

    /** Remembers by which slots the keys of a stream belong to shards, as one of them has said. */
    private void learned(int shard, StreamTable.Row row) {
        String stream = row.spec().name();
        synchronized (slotsLost) { // so none returns from reading a stream before its slots are in use
            StationaryStreams.Change change = stationary.learn(shard, row);
            if (change == StationaryStreams.Change.NONE) {
                return;
            }
            SlotMap now = slots.with(stream, stationary.find(stream), slots.number() + 1);
            if (change == StationaryStreams.Change.OTHER) {
                use(now);
            } else { // nothing of it was routed by other slots
                slots = now;
                streamsSeen.forEach(listener -> listener.accept(stream));
            }
        }
    }

    private void use(SlotMap now) {
        SlotMap before = slots;
        if (now.sameOwners(before)) {
            return;
        }
        slots = now;
        for (Shard shard : numbered) {
            if (before.loses(shard.number(), now)) {
                slotsLost.forEach(listener -> listener.accept(shard));
            }
        }
    }

    /** Returns the shard of each slot, as far as this process knows now. */
    public SlotMap slots() {
        return slots;
    }

    /** Returns whether keys have ever moved between shards, or are moving. */
    public boolean haveMoved() {
        return shards.stream().anyMatch(shard -> shard.mapVersion() > 1);
    }

    /**
     * Adds a listener for stationary streams that this process has read for the first time.
     *
     * @param listener is called with the stream's name before anything of it is routed
     */
    public void onStreamSeen(Consumer<String> listener) {
        streamsSeen.add(listener);
    }

    /**
     * Adds a listener for shards that have closed slots.
     *
     * @param listener is called with a shard when that has closed slots, before this process knows a map of a stream there that is
     *     later than that
     */
    public void onSlotsLost(Consumer<Shard> listener) {
        slotsLost.add(listener);
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

    /** Opens the databases, in any order, with names for the shards, as the following method does. */
    public static Shards open(List<DataSource> dataSources, List<String> names, Settings settings) {
        return open(dataSources, names, settings, false);
    }

    /**
     * Opens the databases, in any order.
     *
     * @param names the names of the shards in the order of the data sources; empty: those recorded in the databases
     * @param addShards whether databases without an identity become further shards
     * @throws ShardIdentityException if the databases do not form one cluster
     * @throws EventSqlException if the cluster cannot be determined or created because databases are unavailable
     */
    public static Shards open(List<DataSource> dataSources, List<String> names, Settings settings, boolean addShards) {
        SqlSchema schema = new SqlSchema(settings.schema());
        ShardOpener opener = new ShardOpener(
                new Migrator(schema, settings.migrateSchema()), new ShardTable(schema), new IncarnationTable(schema));
        List<Database> databases = dataSources.stream()
                .map(dataSource -> new Database(dataSource, settings.networkTimeout()))
                .toList();
        return new Shards(opener, databases, names, opener.open(databases, names, addShards), Tables.in(schema));
    }

    /** Returns the shards whose databases are given to this process, by number. */
    public List<Shard> all() {
        return shards;
    }

    /** Returns all shards of the cluster, by number. */
    public List<Shard> numbered() {
        return numbered;
    }

    /**
     * Requires that this process was given the databases of all shards that have events, also of those that were added since it
     * started: what it does on the others alone would be incomplete. Of databases that are unavailable nothing is known here; what
     * follows fails on them.
     *
     * @param failure the beginning of the error message
     * @throws EventSqlException if one was not given
     */
    public void requireAllGiven(String failure) {
        List<String> lacking = lacking();
        if (!lacking.isEmpty()) {
            throw new EventSqlException(
                    failure + ": the database of " + String.join(", ", lacking) + " is " + NOT_GIVEN);
        }
    }

    /** Returns the names of the shards that have events, as far as the others know, and whose databases this process was not given. */
    public List<String> lacking() {
        List<ShardIdentity> known = new ArrayList<>();
        for (Shard shard : shards) {
            try {
                shard.require().read(c -> tables.shards().find(c)).ifPresent(known::add);
            } catch (SQLException e) {
                LOG.debug("The identity of {} could not be read", shard, e);
            }
        }
        ShardIdentity.Unused withoutEvents = ShardIdentity.Unused.of(known);
        List<String> names = known.stream()
                .map(ShardIdentity::names)
                .max(Comparator.comparingInt(List::size))
                .orElse(List.of());
        return IntStream.range(0, names.size())
                .filter(number -> !withoutEvents.contains(number) && !isGiven(number))
                .mapToObj(names::get)
                .toList();
    }

    private boolean isGiven(int number) {
        return number < numbered.size() && numbered.get(number).isConfigured();
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

    /** Returns the number of shards of the cluster. */
    public int size() {
        return numbered.size();
    }

    public Shard get(int number) {
        return number < numbered.size() ? numbered.get(number) : addedLater.computeIfAbsent(number, this::unknown);
    }

    /** Returns a shard that was added since this process started, so it was not given the database. */
    private Shard unknown(int number) {
        List<String> names = new ArrayList<>(cluster.names());
        while (names.size() <= number) {
            names.add("shard" + names.size());
        }
        Shard shard = new Shard(cluster.withShards(names, cluster.databaseIds()), number, opener, tables);
        shard.setConfigured(false);
        return shard;
    }

    /** Returns the shard that holds the keys of a slot of a stream. */
    public Shard ofSlot(String stream, int slot) {
        return get(slots.of(stream).owner(slot));
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
                opener.failures().remove(database);
                LOG.info("Shard {} is available", numbered.get(opened.identity().number()));
                return true;
            } catch (ShardIdentityException e) {
                // Another map may be known here until a move is complete.
                String reason = String.valueOf(e.getMessage());
                opener.failures().addRejection(database, reason);
                if (rejections.add(reason)) {
                    LOG.error("Rejected a shard that joined late; comparing it again in the background: {}", reason);
                }
                return false;
            } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
                OpenFailure failure = new OpenFailure(opener.failures().label(database), e);
                opener.failures().add(database, failure);
                LOG.debug("{} is still not open; retrying in the background", failure.label(), e);
                return false;
            }
        });
    }

    private synchronized boolean hasRejected() {
        return !rejections.isEmpty();
    }

    /** The slots may have moved since a database was opened, and one that is opened now knows that. */
    private void readSlots() {
        for (Shard shard : numbered) {
            try {
                if (shard.database().isPresent()) {
                    shard.readSlots();
                }
            } catch (SQLException e) {
                LOG.debug("The slots of {} could not be read", shard, e);
            }
        }
    }

    /** Retries in the background until every database has been reached. */
    public void openMissingInBackground(long intervalMs) {
        if (hasMissing()) {
            // Of a shard to which nothing is appended yet: an attempt may take as long as a pool waits for connections.
            Shard idle = shards.stream()
                    .filter(shard -> shard.database().isEmpty())
                    .findFirst()
                    .orElse(shards.get(0));
            idle.inBackground(intervalMs, () -> {
                try {
                    openMissing();
                    if (hasRejected()) {
                        readSlots();
                    }
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
        List<Shard> all =
                Stream.concat(numbered.stream(), addedLater.values().stream()).toList();
        all.forEach(Shard::stopBackground);
        all.forEach(shard -> shard.awaitBackgroundStop(deadlineNanos));
    }

    private void accept(Database database, Opened opened) {
        ShardIdentity identity = opened.identity();
        List<ShardIdentity> attached = numbered.stream()
                .filter(other -> other.database().isPresent())
                .map(Shard::identity)
                .toList();
        for (ShardIdentity other : attached.isEmpty() ? List.of(cluster) : attached) {
            if (!identity.sameCluster(other)) {
                throw new ShardIdentityException("A database is shard " + identity.name() + " of " + describe(identity)
                        + ", but another is of " + describe(other));
            }
        }
        Shard shard = numbered.get(identity.number());
        if (shard.database().isPresent()) {
            throw new ShardIdentityException("Two databases are shard " + identity.name() + " of cluster "
                    + cluster.clusterId() + ": one is a copy of the other");
        }
        shard.attach(database, givenNames.getOrDefault(database, identity.name()), identity, opened.incarnation());
    }

    private static String describe(ShardIdentity identity) {
        return "cluster " + identity.clusterId() + " (map version " + identity.mapVersion() + ", shards "
                + identity.names() + ", databases " + identity.databaseIds() + ")";
    }
}
