package io.eventsql.internal.shard;

import io.eventsql.EventSqlException;
import io.eventsql.ShardIdentityException;
import io.eventsql.internal.schema.Migrator;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.ShardIdentity;
import io.eventsql.internal.sql.ShardTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the identity of each database, and assigns identities to the databases of a new cluster. The order in which the
 * databases are given does not matter once they have one.
 *
 * <p>A new cluster is created under a lock in the first of its databases, in the order of their own ids, so that
 * processes that start at the same moment create one cluster. If a process dies before all identities are recorded, the
 * next one completes the cluster from the identities that are.
 */
final class ShardOpener {
    private static final Logger LOG = LoggerFactory.getLogger(ShardOpener.class);

    private final Migrator migrator;
    private final ShardTable identities;

    ShardOpener(Migrator migrator, ShardTable identities) {
        this.migrator = migrator;
        this.identities = identities;
    }

    /** A database that was reached. */
    private record Reached(
            Database database, String id, @Nullable ShardIdentity identity) {}

    /**
     * Opens all databases. An unavailable one is left for later, if another one knows the cluster.
     *
     * @return the identity of each database, in the given order; {@code null} if it is unavailable
     * @throws ShardIdentityException if the databases do not form one cluster
     * @throws EventSqlException if the cluster cannot be determined or created because databases are unavailable
     */
    List<@Nullable ShardIdentity> open(List<Database> databases) {
        List<@Nullable Reached> reached = new ArrayList<>();
        @Nullable SQLException failure = null;
        for (Database database : databases) {
            try {
                reached.add(migrateAndRead(database));
            } catch (SQLException e) {
                LOG.warn("Database {} of {} is unavailable: {}", reached.size() + 1, databases.size(), e.getMessage());
                reached.add(null);
                failure = e;
            }
        }
        List<Reached> answering = reached.stream().flatMap(Stream::ofNullable).toList();
        requireDistinct(answering);
        boolean complete = answering.stream().allMatch(r -> r.identity() != null);
        if (answering.isEmpty()) {
            throw new EventSqlException(
                    "None of the " + databases.size() + " databases is available"
                            + (failure == null ? "" : ": " + failure.getMessage()),
                    failure);
        }
        if (!complete) {
            if (answering.size() < databases.size()) {
                throw new EventSqlException(
                        "A new cluster can be created only while all of its databases are available; "
                                + answering.size() + " of " + databases.size() + " are",
                        failure);
            }
            reached = assignIdentities(answering);
        }
        List<@Nullable ShardIdentity> found = new ArrayList<>();
        for (@Nullable Reached one : reached) {
            found.add(one == null ? null : one.identity());
        }
        return found;
    }

    /** Migrates a database that was unavailable when the cluster was opened, and returns its identity. */
    Optional<ShardIdentity> openLate(Database database) throws SQLException {
        return Optional.ofNullable(migrateAndRead(database).identity());
    }

    /** Migrates a database that has an outbox but is not a shard. */
    void migrateOutbox(Database database) throws SQLException {
        migrator.migrateOutbox(database);
    }

    private Reached migrateAndRead(Database database) throws SQLException {
        migrator.migrate(database);
        return database.call(c -> new Reached(
                database, identities.databaseId(c), identities.find(c).orElse(null)));
    }

    private static void requireDistinct(List<Reached> reached) {
        if (reached.stream().map(Reached::id).distinct().count() < reached.size()) {
            throw new ShardIdentityException("The same database is given for two shards");
        }
    }

    /** Assigns a free number to every database without an identity, in the order in which the databases are given. */
    private List<@Nullable Reached> assignIdentities(List<Reached> given) {
        Reached first = given.stream().min(Comparator.comparing(Reached::id)).orElseThrow();
        try {
            return first.database().transaction(locked -> {
                identities.lockForIdentity(locked);
                return assignIdentitiesLocked(given, first, locked);
            });
        } catch (SQLException e) {
            throw new EventSqlException("The identities of the databases could not be recorded: " + e.getMessage(), e);
        }
    }

    private List<@Nullable Reached> assignIdentitiesLocked(List<Reached> given, Reached first, Connection locked)
            throws SQLException {
        List<Reached> current = new ArrayList<>();
        for (Reached one : given) { // again, now under the lock
            current.add(new Reached(one.database(), one.id(), readAgain(one, first, locked)));
        }
        @Nullable
        ShardIdentity known = current.stream()
                .map(Reached::identity)
                .flatMap(Stream::ofNullable)
                .findFirst()
                .orElse(null);
        ShardIdentity cluster = known != null ? known : newCluster(given.size());
        if (cluster.shards() != given.size()) {
            throw new ShardIdentityException("A database without identity was given, but the cluster "
                    + cluster.clusterId() + " has all of its " + cluster.shards() + " shards already");
        }
        if (known != null && current.stream().anyMatch(one -> one.identity() == null)) {
            requireUnused(current, cluster);
        }
        List<Integer> free = new ArrayList<>();
        for (int number = 0; number < cluster.shards(); number++) {
            free.add(number);
        }
        current.stream()
                .map(Reached::identity)
                .flatMap(Stream::ofNullable)
                .forEach(i -> free.remove(Integer.valueOf(i.number())));

        List<@Nullable Reached> result = new ArrayList<>();
        for (Reached one : current) {
            if (one.identity() != null) {
                result.add(one);
                continue;
            }
            ShardIdentity identity = cluster.forShard(free.removeFirst());
            // The identity of the locked database is committed last, together with the lock.
            if (one.id().equals(first.id())) {
                identities.insert(locked, identity);
            } else {
                one.database().transaction(c -> {
                    identities.insert(c, identity);
                    return identity;
                });
            }
            result.add(new Reached(one.database(), one.id(), identity));
        }
        LOG.info("Recorded the identities of the {} shards of cluster {}", cluster.shards(), cluster.clusterId());
        return result;
    }

    /** Returns the identity of shard 0 of a new cluster, whose slots are assigned to the shards in turn. */
    private static ShardIdentity newCluster(int shards) {
        List<String> names =
                IntStream.range(0, shards).mapToObj(i -> "shard" + i).toList();
        int[] slotMap =
                IntStream.range(0, KeyHash.SLOTS).map(slot -> slot % shards).toArray();
        return new ShardIdentity(UUID.randomUUID(), 0, names.getFirst(), names, slotMap, 1);
    }

    /**
     * Rejects a new database in a cluster that has streams. A cluster that was created only in part has none yet; one
     * that has them lost a database, or was given a wrong one.
     */
    private void requireUnused(List<Reached> reached, ShardIdentity cluster) throws SQLException {
        for (Reached one : reached) {
            if (one.identity() != null && one.database().call(identities::hasStreams)) {
                throw new ShardIdentityException("A database without identity was given in place of a shard of the"
                        + " cluster " + cluster.clusterId() + ", which is in use: its events would be missing");
            }
        }
    }

    private @Nullable ShardIdentity readAgain(Reached one, Reached first, Connection locked) throws SQLException {
        Optional<ShardIdentity> identity = one.id().equals(first.id())
                ? identities.find(locked)
                : one.database().call(identities::find);
        return identity.orElse(null);
    }
}
