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
 * Finds out which shard each database is, and gives new databases their identity. The order of the databases does not
 * matter once they have one.
 *
 * <p>A new cluster is made under a lock in the first of its databases by an order that every process agrees on (their
 * own ids), so that processes which start at the same moment make one cluster. If one dies on the way, the databases
 * that have an identity tell the next one how to go on.
 */
final class ShardOpener {
    private static final Logger LOG = LoggerFactory.getLogger(ShardOpener.class);

    private final Migrator migrator;
    private final ShardTable identities;

    ShardOpener(Migrator migrator, ShardTable identities) {
        this.migrator = migrator;
        this.identities = identities;
    }

    /** A database that answered. */
    private record Reached(
            Database database, String id, @Nullable ShardIdentity identity) {}

    /**
     * Opens all databases. One that does not answer is left for later, if the others know the cluster.
     *
     * @return for each database, in the given order, who it is; {@code null} if it did not answer
     * @throws ShardIdentityException if a database is not what it is used as
     * @throws EventSqlException if the cluster cannot be known or made because of databases that do not answer
     */
    List<@Nullable ShardIdentity> open(List<Database> databases) {
        List<@Nullable Reached> reached = new ArrayList<>();
        @Nullable SQLException failure = null;
        for (Database database : databases) {
            try {
                reached.add(reach(database));
            } catch (SQLException e) {
                LOG.warn("Database {} of {} does not answer: {}", reached.size() + 1, databases.size(), e.getMessage());
                reached.add(null);
                failure = e;
            }
        }
        List<Reached> answering = reached.stream().flatMap(Stream::ofNullable).toList();
        requireDistinct(answering);
        boolean complete = answering.stream().allMatch(r -> r.identity() != null);
        if (answering.isEmpty()) {
            throw new EventSqlException(
                    "None of the " + databases.size() + " databases answers"
                            + (failure == null ? "" : ": " + failure.getMessage()),
                    failure);
        }
        if (!complete) {
            if (answering.size() < databases.size()) {
                throw new EventSqlException(
                        "A new cluster can be made only while all its databases answer; " + answering.size() + " of "
                                + databases.size() + " do",
                        failure);
            }
            reached = giveIdentities(answering);
        }
        List<@Nullable ShardIdentity> found = new ArrayList<>();
        for (@Nullable Reached one : reached) {
            found.add(one == null ? null : one.identity());
        }
        return found;
    }

    /** Who a database is that answers only now. */
    Optional<ShardIdentity> identity(Database database) throws SQLException {
        return Optional.ofNullable(reach(database).identity());
    }

    /** Prepares a database that is no shard for its outbox. */
    void migrateOutbox(Database database) throws SQLException {
        migrator.migrateOutbox(database);
    }

    private Reached reach(Database database) throws SQLException {
        migrator.migrate(database);
        return database.call(c -> new Reached(
                database, identities.databaseId(c), identities.find(c).orElse(null)));
    }

    private static void requireDistinct(List<Reached> reached) {
        if (reached.stream().map(Reached::id).distinct().count() < reached.size()) {
            throw new ShardIdentityException("The same database is given for two shards");
        }
    }

    /** Gives every database without an identity a free number, in the order in which the databases are given. */
    private List<@Nullable Reached> giveIdentities(List<Reached> given) {
        Reached first = given.stream().min(Comparator.comparing(Reached::id)).orElseThrow();
        try {
            return first.database().transaction(locked -> {
                identities.lockForIdentity(locked);
                return giveIdentitiesLocked(given, first, locked);
            });
        } catch (SQLException e) {
            throw new EventSqlException("Could not give the databases their identity: " + e.getMessage(), e);
        }
    }

    private List<@Nullable Reached> giveIdentitiesLocked(List<Reached> given, Reached first, Connection locked)
            throws SQLException {
        List<Reached> current = new ArrayList<>();
        for (Reached one : given) { // again, now under the lock
            current.add(new Reached(one.database(), one.id(), read(one, first, locked)));
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
                    + cluster.clusterId() + " has its " + cluster.shards() + " shards already");
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
            // The locked database's own identity commits last, with the lock.
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
        LOG.info("Cluster {}: identities of {} shards are recorded", cluster.clusterId(), cluster.shards());
        return result;
    }

    /** The identity of shard 0 of a new cluster: slots go round the shards. */
    private static ShardIdentity newCluster(int shards) {
        List<String> names =
                IntStream.range(0, shards).mapToObj(i -> "shard" + i).toList();
        int[] slotMap =
                IntStream.range(0, KeyHash.SLOTS).map(slot -> slot % shards).toArray();
        return new ShardIdentity(UUID.randomUUID(), 0, names.getFirst(), names, slotMap, 1);
    }

    /** A cluster whose making was interrupted has no streams yet. One that has them lost a database, or got a wrong one. */
    private void requireUnused(List<Reached> reached, ShardIdentity cluster) throws SQLException {
        for (Reached one : reached) {
            if (one.identity() != null && one.database().call(identities::hasStreams)) {
                throw new ShardIdentityException("A database without identity was given in place of a shard of the"
                        + " cluster " + cluster.clusterId() + ", which is in use: its events would be missing");
            }
        }
    }

    private @Nullable ShardIdentity read(Reached one, Reached first, Connection locked) throws SQLException {
        Optional<ShardIdentity> identity = one.id().equals(first.id())
                ? identities.find(locked)
                : one.database().call(identities::find);
        return identity.orElse(null);
    }
}
