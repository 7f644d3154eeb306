package io.eventsql.internal.sql;

import java.sql.Connection;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/** {@code shard}: the one row that says which shard of which cluster this database is. */
public final class ShardTable {
    private static final int LOCK_CLASS = 0x45534944; // "ESID": one process at a time gives a database its identity

    private final SqlSchema schema;

    public ShardTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** The identity; empty in a database that has none yet. */
    public Optional<ShardIdentity> find(Connection connection) {
        return Jooq.using(connection)
                .fetchOptional(schema.sql("SELECT cluster_id, shard_number, shard_name, shard_names, slot_map,"
                        + " map_version FROM eventsql.shard"))
                .map(r -> new ShardIdentity(
                        r.get("cluster_id", UUID.class),
                        r.get("shard_number", Integer.class),
                        r.get("shard_name", String.class),
                        List.of(r.get("shard_names", String[].class)),
                        Arrays.stream(r.get("slot_map", Short[].class))
                                .mapToInt(Short::intValue)
                                .toArray(),
                        r.get("map_version", Integer.class)));
    }

    /** Whether the shard has any stream. */
    public boolean hasStreams(Connection connection) {
        return Boolean.TRUE.equals(
                Jooq.using(connection).fetchValue(schema.sql("SELECT EXISTS (SELECT FROM eventsql.stream)")));
    }

    /** Waits for, then holds until the transaction's end, the right to give identities that begin with this database. */
    public void lockForIdentity(Connection connection) {
        Jooq.using(connection).fetch("SELECT pg_advisory_xact_lock(?, hashtext(?))", LOCK_CLASS, schema.name());
    }

    /** Something that orders databases the same way for every process: the cluster's and the database's own id. */
    public String databaseId(Connection connection) {
        return Jooq.using(connection)
                .fetchSingle("SELECT lpad((SELECT system_identifier FROM pg_control_system())::text, 20, '0') || ':'"
                        + " || (SELECT oid FROM pg_database WHERE datname = current_database())::text")
                .get(0, String.class);
    }

    /** Records the identity of a database that has none. */
    public void insert(Connection connection, ShardIdentity identity) {
        Short[] slots = Arrays.stream(identity.slotMap())
                .mapToObj(shard -> (short) shard)
                .toArray(Short[]::new);
        Jooq.using(connection)
                .execute(
                        schema.sql("INSERT INTO eventsql.shard"
                                + " (cluster_id, shard_number, shard_name, shard_names, slot_map, map_version)"
                                + " VALUES (?, ?, ?, ?, ?, ?)"),
                        identity.clusterId(),
                        identity.number(),
                        identity.name(),
                        identity.names().toArray(String[]::new),
                        slots,
                        identity.mapVersion());
    }
}
