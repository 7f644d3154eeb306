package io.eventsql.internal.sql;

import java.sql.Connection;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** {@code shard}: the one row with the identity of this database in its cluster. */
public final class ShardTable {
    private static final int LOCK_CLASS = 0x45534944; // "ESID": one process at a time assigns identities

    // Reads one row by a sequential scan; takes no row lock.
    private static final String FIND = """
            SELECT cluster_id, shard_number, shard_name, shard_names, database_ids, slot_map, map_version,
                   former_slot_map, spare_shards, removed_shards
            FROM eventsql.shard""";

    // The primary key (singleton) admits one row.
    private static final String INSERT = """
            INSERT INTO eventsql.shard
                (cluster_id, shard_number, shard_name, shard_names, database_ids, slot_map, map_version, spare_shards,
                 removed_shards)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""";

    // Updates the one row, by a sequential scan.
    private static final String EXTEND =
            "UPDATE eventsql.shard SET shard_names = ?, database_ids = ?, spare_shards = ?";

    // Reads one row by a sequential scan.
    private static final String HAS_STREAMS = "SELECT EXISTS (SELECT FROM eventsql.stream)";

    private final SqlSchema schema;

    public ShardTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** Returns the identity; empty if the database has none yet. */
    public Optional<ShardIdentity> find(Connection connection) {
        return Jooq.using(connection)
                .fetchOptional(schema.sql(FIND))
                .map(r -> new ShardIdentity(
                        r.get("cluster_id", UUID.class),
                        r.get("shard_number", Integer.class),
                        r.get("shard_name", String.class),
                        List.of(r.get("shard_names", String[].class)),
                        List.of(r.get("database_ids", UUID[].class)),
                        ints(r.get("slot_map", Short[].class)),
                        r.get("map_version", Integer.class),
                        intsOrNull(r.get("former_slot_map", Short[].class)),
                        new ShardIdentity.Unused(
                                numbers(r.get("spare_shards", Short[].class)),
                                numbers(r.get("removed_shards", Short[].class)))));
    }

    private static int[] ints(Short[] stored) {
        return Arrays.stream(stored).mapToInt(Short::intValue).toArray();
    }

    private static Set<Integer> numbers(Short[] stored) {
        return Arrays.stream(stored).map(Short::intValue).collect(Collectors.toUnmodifiableSet());
    }

    private static Short[] shorts(Set<Integer> numbers) {
        return numbers.stream().map(Integer::shortValue).toArray(Short[]::new);
    }

    private static int @Nullable [] intsOrNull(Short @Nullable [] stored) {
        return stored == null ? null : ints(stored);
    }

    /** Records that the cluster has further shards. */
    public void extend(Connection connection, ShardIdentity identity) {
        Jooq.using(connection)
                .execute(
                        schema.sql(EXTEND),
                        identity.names().toArray(String[]::new),
                        identity.databaseIds().toArray(UUID[]::new),
                        shorts(identity.unused().spare()));
    }

    /** Returns whether the database has streams. */
    public boolean hasStreams(Connection connection) {
        return Boolean.TRUE.equals(Jooq.using(connection).fetchValue(schema.sql(HAS_STREAMS)));
    }

    /**
     * Takes the advisory lock that assigning the identities of a new cluster needs; held until the transaction ends.
     */
    public void lockForIdentity(Connection connection) {
        Jooq.using(connection).fetch("SELECT pg_advisory_xact_lock(?, hashtext(?))", LOCK_CLASS, schema.name());
    }

    /** Records the identity of a database that has none. */
    public void insert(Connection connection, ShardIdentity identity) {
        Short[] slots = Arrays.stream(identity.slotMap())
                .mapToObj(shard -> (short) shard)
                .toArray(Short[]::new);
        Jooq.using(connection)
                .execute(
                        schema.sql(INSERT),
                        identity.clusterId(),
                        identity.number(),
                        identity.name(),
                        identity.names().toArray(String[]::new),
                        identity.databaseIds().toArray(UUID[]::new),
                        slots,
                        identity.mapVersion(),
                        shorts(identity.unused().spare()),
                        shorts(identity.unused().removed()));
    }
}
