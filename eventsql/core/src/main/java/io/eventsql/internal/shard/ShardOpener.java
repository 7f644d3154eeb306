package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.ShardIdentityException;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.IncarnationTable;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.sql.ShardTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the identity of each database, and assigns identities to the databases of a new cluster. The order in which the
 * databases are given does not matter.
 *
 * <p>The identity of a shard names the databases of all shards. A database without an identity joins a cluster only if the
 * others name it: then the creation of the cluster was interrupted. So two sets of databases that overlap cannot become two
 * clusters.
 *
 * <p>A new cluster is created in one transaction per database. All of them hold a lock in their database, in the order of
 * the databases' ids, and have recorded the identity before the first one commits, so that a failed start leaves none
 * behind.
 */
final class ShardOpener {
    private static final Logger LOG = LoggerFactory.getLogger(ShardOpener.class);

    private final Migrator migrator;
    private final ShardTable identities;
    private final IncarnationTable incarnations;
    private final OpenFailures notOpened = new OpenFailures();

    ShardOpener(Migrator migrator, ShardTable identities, IncarnationTable incarnations) {
        this.migrator = migrator;
        this.identities = identities;
        this.incarnations = incarnations;
    }

    /** A database of the cluster. */
    record Opened(ShardIdentity identity, String incarnation) {}

    /** A database that was reached. */
    private record Reached(
            Database database,
            String label,
            String incarnation,
            @Nullable ShardIdentity identity) {

        /** Returns the id by which other shards name this database. */
        UUID id() {
            return identity == null
                    ? IncarnationTable.id(incarnation)
                    : identity.databaseIds().get(identity.number());
        }

        Reached with(@Nullable ShardIdentity other) {
            return new Reached(database, label, incarnation, other);
        }
    }

    /**
     * Opens all databases. An unavailable one is left for later, if another one knows the cluster.
     *
     * @param names the names of the shards in the order of the databases; may be empty
     * @param addShards whether databases without an identity become further shards of the cluster that the others form
     * @return each database in the given order; {@code null} if it is unavailable
     * @throws ShardIdentityException if the databases do not form one cluster
     * @throws EventSqlException if the cluster cannot be determined or created because databases are unavailable, or if a
     *     database cannot be used
     */
    List<@Nullable Opened> open(List<Database> databases, List<String> names, boolean addShards) {
        List<@Nullable Reached> reached = new ArrayList<>();
        List<OpenFailure> failures = new ArrayList<>();
        for (int i = 0; i < databases.size(); i++) {
            String label =
                    names.isEmpty() ? "database " + (i + 1) + " of " + databases.size() : "shard " + names.get(i);
            try {
                reached.add(reach(databases.get(i), label));
            } catch (SQLException | RuntimeException e) { // pools throw exceptions of their own
                if (e instanceof EventSqlException notUsable) {
                    throw notUsable;
                }
                OpenFailure failure = new OpenFailure(label, e);
                failures.add(failure);
                reached.add(null);
                notOpened.add(databases.get(i), failure);
            }
        }
        List<Reached> available = reached.stream().flatMap(Stream::ofNullable).toList();
        if (available.isEmpty()) {
            throw OpenFailure.toException("None of the " + databases.size() + " databases could be opened", failures);
        }
        requireDistinct(available);
        boolean isComplete = available.stream().allMatch(r -> r.identity() != null)
                && (!addShards || countKnownShards(available) == 1);
        if (!isComplete && !failures.isEmpty()) {
            throw OpenFailure.toException(
                    "A new cluster can be created only while all of its databases are available; " + available.size()
                            + " of " + databases.size() + " are",
                    failures);
        }
        List<@Nullable Reached> complete = isComplete ? reached : assignIdentities(available, addShards);
        List<@Nullable Opened> opened = new ArrayList<>();
        for (@Nullable Reached one : complete) {
            @Nullable ShardIdentity identity = one == null ? null : one.identity();
            opened.add(one == null || identity == null ? null : new Opened(identity, one.incarnation()));
        }
        return opened;
    }

    /** Returns how many different numbers of shards the databases know: more than one if adding shards was interrupted. */
    private static long countKnownShards(List<Reached> available) {
        return available.stream()
                .map(Reached::identity)
                .flatMap(Stream::ofNullable)
                .map(ShardIdentity::shards)
                .distinct()
                .count();
    }

    /** Migrates a database that was unavailable when the cluster was opened; empty if it has no identity. */
    Optional<Opened> openLate(Database database) throws SQLException {
        Reached reached = reach(database, notOpened.label(database));
        @Nullable ShardIdentity identity = reached.identity();
        return identity == null ? Optional.empty() : Optional.of(new Opened(identity, reached.incarnation()));
    }

    /** Why databases are not open. */
    OpenFailures failures() {
        return notOpened;
    }

    /** Returns the SQL files that the database of a shard lacks. */
    List<String> missingFiles(Database database) throws SQLException {
        return migrator.missingFiles(database);
    }

    /** Migrates a database that has an outbox but is not a shard. */
    void migrateOutbox(Database database) throws SQLException {
        migrator.migrateOutbox(database);
    }

    private Reached reach(Database database, String label) throws SQLException {
        database.requirePostgreSql(label);
        database.checkIsolation(label);
        migrator.migrate(database);
        String incarnation = database.call(incarnations::find);
        return new Reached(
                database, label, incarnation, database.read(identities::find).orElse(null));
    }

    private static void requireDistinct(List<Reached> reached) {
        if (reached.stream().map(Reached::incarnation).distinct().count() < reached.size()) {
            throw new ShardIdentityException("The same database is given for two shards");
        }
    }

    /** Assigns a number to every database without an identity. */
    private List<@Nullable Reached> assignIdentities(List<Reached> given, boolean addShards) {
        List<Reached> inLockOrder =
                given.stream().sorted(Comparator.comparing(Reached::id)).toList();
        List<Locked> locked = new ArrayList<>();
        try {
            lockAndAssign(given, inLockOrder, locked, addShards);
        } catch (SQLException e) {
            throw new EventSqlException("The identities of the databases could not be recorded: " + e.getMessage(), e);
        }
        List<@Nullable Reached> result = new ArrayList<>();
        for (Reached one : given) {
            result.add(locked.stream()
                    .filter(l -> l.reached.database().equals(one.database()))
                    .findFirst()
                    .map(l -> l.reached)
                    .orElseThrow());
        }
        return result;
    }

    /** A database in whose transaction the lock is held. */
    private static final class Locked {
        private final Connection connection;
        private Reached reached;

        Locked(Connection connection, Reached reached) {
            this.connection = connection;
            this.reached = reached;
        }
    }

    /** Locks the remaining databases, one transaction within the other; then assigns, and all transactions commit. */
    private void lockAndAssign(List<Reached> given, List<Reached> remaining, List<Locked> locked, boolean addShards)
            throws SQLException {
        if (remaining.isEmpty()) {
            assignLocked(given, locked, addShards);
            return;
        }
        Reached next = remaining.getFirst();
        next.database().transaction(connection -> {
            identities.lockForIdentity(connection);
            locked.add(
                    new Locked(connection, next.with(identities.find(connection).orElse(null))));
            lockAndAssign(given, remaining.subList(1, remaining.size()), locked, addShards);
            return next;
        });
    }

    private void assignLocked(List<Reached> given, List<Locked> locked, boolean addShards) {
        @Nullable
        ShardIdentity known = locked.stream()
                .map(l -> l.reached.identity())
                .flatMap(Stream::ofNullable)
                .max(Comparator.comparingInt(ShardIdentity::shards).thenComparingInt(ShardIdentity::finishedVersion))
                .orElse(null);
        ShardIdentity cluster = known == null
                ? newCluster(given.stream().map(Reached::id).toList())
                : addShards ? withAdded(known, given, locked) : known;
        boolean recorded = false;
        for (Locked one : locked) {
            ShardIdentity own = one.reached.identity();
            if (own != null && addShards && own.shards() < cluster.shards()) {
                ShardIdentity extended = own.withShards(cluster.names(), cluster.databaseIds());
                identities.extend(one.connection, extended);
                one.reached = one.reached.with(extended);
                recorded = true;
            } else if (own == null) {
                ShardIdentity identity = cluster.forShard(requireNumber(cluster, given.size(), one.reached));
                identities.insert(one.connection, identity);
                one.reached = one.reached.with(identity);
                recorded = true;
            }
        }
        if (recorded) {
            LOG.info("Recording the identities of the {} shards of cluster {}", cluster.shards(), cluster.clusterId());
        }
    }

    /** Returns the identity of a cluster with the databases that have none as further shards, in their order, without slots. */
    private ShardIdentity withAdded(ShardIdentity known, List<Reached> inOrder, List<Locked> locked) {
        Set<UUID> given = locked.stream().map(l -> l.reached.id()).collect(Collectors.toSet());
        for (int number = 0; number < known.shards(); number++) {
            if (!given.contains(known.databaseIds().get(number))
                    && !known.unused().removed().contains(number)) {
                throw needsAll(known);
            }
        }
        List<String> names = new ArrayList<>(known.names());
        List<UUID> ids = new ArrayList<>(known.databaseIds());
        for (Reached reached : inOrder) {
            Locked one = locked.stream()
                    .filter(l -> l.reached.database().equals(reached.database()))
                    .findFirst()
                    .orElseThrow();
            if (one.reached.identity() == null && !ids.contains(one.reached.id())) {
                if (identities.hasStreams(one.connection)) {
                    throw new ShardIdentityException("The " + one.reached.label()
                            + " cannot be added as a shard: it has streams, and no identity");
                }
                names.add("shard" + names.size());
                ids.add(one.reached.id());
            }
        }
        if (names.size() > KeyHash.SLOTS) {
            throw new ShardIdentityException("A cluster has at most " + KeyHash.SLOTS + " shards");
        }
        ShardIdentity extended = known.withShards(names, ids);
        return new ShardIdentity(
                known.clusterId(),
                known.number(),
                known.name(),
                names,
                ids,
                known.finishedMap(),
                known.finishedVersion(),
                null,
                extended.unused());
    }

    private static ShardIdentityException needsAll(ShardIdentity known) {
        return new ShardIdentityException("Shards can be added only to a cluster whose databases are all given and"
                + " available: cluster " + known.clusterId() + " has the shards " + known.names() + ", databases "
                + known.databaseIds());
    }

    /** Returns the number that the cluster has for a database without an identity. */
    private static int requireNumber(ShardIdentity cluster, int given, Reached database) {
        int number = cluster.databaseIds().indexOf(database.id());
        if (number >= 0) {
            return number;
        }
        String described = "The " + database.label() + " (id " + database.id() + ") has no identity, and is none of the"
                + " databases of cluster " + cluster.clusterId() + " (shards " + cluster.names() + ", databases "
                + cluster.databaseIds() + "), to which another given one belongs. ";
        throw new ShardIdentityException(
                cluster.shards() < given
                        ? described + "The cluster has all of its " + cluster.shards()
                                + " shards already. To add databases as further shards, start one process with"
                                + " EventSqlBuilder.addShards()"
                        : described
                                + "The cluster is in use: with this database in place of another one, events would be"
                                + " missing. Give the data sources of the cluster's own databases, or restore a lost one"
                                + " from its backup");
    }

    /** Returns the identity of shard 0 of a new cluster, whose slots are assigned to the shards in turn. */
    private static ShardIdentity newCluster(List<UUID> databaseIds) {
        int shards = databaseIds.size();
        List<String> names =
                IntStream.range(0, shards).mapToObj(i -> "shard" + i).toList();
        int[] slotMap =
                IntStream.range(0, KeyHash.SLOTS).map(slot -> slot % shards).toArray();
        return new ShardIdentity(
                UUID.randomUUID(),
                0,
                names.getFirst(),
                names,
                databaseIds,
                slotMap,
                1,
                null,
                ShardIdentity.Unused.NONE);
    }
}
