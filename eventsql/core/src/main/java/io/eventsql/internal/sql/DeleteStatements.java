package io.eventsql.internal.sql;

import java.sql.Connection;
import java.util.List;
import java.util.Optional;

/** The statements that delete a stream: its rows first, then its tables, a few in each transaction. */
public final class DeleteStatements {
    /** Each takes about ten entries of the server's lock table until the commit. */
    private static final int TABLES_PER_TRANSACTION = 20;

    // Index: stream_name_unique, consumer_name_unique and the primary key of consumer_partition. Scans the outbox.
    // Takes
    // no row lock.
    private static final String FIND_OBSTACLE = "SELECT eventsql.deletion_obstacle_v1(?)";

    // Indexes: stream_name_unique and consumer_name_unique. Takes no row lock.
    private static final String FIND_CONSUMERS = """
            SELECT c.name
            FROM eventsql.consumer c
            JOIN eventsql.stream s USING (stream_id)
            WHERE s.name = ?
            ORDER BY c.name""";

    // Index: the primary key. Takes no row lock.
    private static final String HAS_BEGUN = """
            SELECT EXISTS (SELECT FROM eventsql.deleted_stream WHERE name = ?)""";

    // Locks the row of retention, then that of the stream and those of its partitions, which every append locks first.
    private static final String BEGIN = "SELECT eventsql.begin_delete_stream_v1(?)";

    // Index: the primary key of stationary_stream. Locks the row of shard in share mode.
    private static final String FORGET_STATIONARY = "SELECT eventsql.forget_stationary_stream_v1(?)";

    // Locks the tables that it drops, and the tables of their partitions, exclusively; waits for that for 2 s at most.
    private static final String DROP = "SELECT eventsql.drop_deleted_stream_v1(?, ?)";

    private final SqlSchema schema;

    public DeleteStatements(SqlSchema schema) {
        this.schema = schema;
    }

    /** Returns what forbids to delete a stream, as a sentence. */
    public Optional<String> findObstacle(Connection connection, String stream) {
        return Optional.ofNullable((String) Jooq.using(connection).fetchValue(schema.sql(FIND_OBSTACLE), stream));
    }

    /** Returns the names of a stream's consumers. */
    public List<String> findConsumers(Connection connection, String stream) {
        return Jooq.using(connection).fetch(schema.sql(FIND_CONSUMERS), stream).getValues(0, String.class);
    }

    /** Returns whether the deletion of a stream of that name has begun and is not complete. */
    public boolean hasBegun(Connection connection, String stream) {
        return Boolean.TRUE.equals(Jooq.using(connection).fetchValue(schema.sql(HAS_BEGUN), stream));
    }

    /**
     * Deletes the rows of a stream, in the caller's transaction, which must be READ COMMITTED. Does nothing without such a
     * stream.
     *
     * @throws org.jooq.exception.DataAccessException with {@link SqlErrors#STREAM_IN_USE} if it is in use
     */
    public void begin(Connection connection, String stream) {
        Jooq.using(connection).fetch(schema.sql(BEGIN), stream);
        Jooq.using(connection).fetch(schema.sql(FORGET_STATIONARY), stream); // if another shard has the stream, too
    }

    /**
     * Drops some of the tables of a stream whose deletion has begun, in the caller's transaction.
     *
     * @return whether to repeat the call in another transaction
     */
    public boolean dropTables(Connection connection, String stream) {
        return Boolean.TRUE.equals(Jooq.using(connection).fetchValue(schema.sql(DROP), stream, TABLES_PER_TRANSACTION));
    }
}
