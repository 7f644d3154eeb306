package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.util.Arrays;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * The statement that appends a batch: one round trip. A batch of one stream goes to the function of that stream, whose plans
 * the server keeps; a batch of several streams to the function that serves all of them. Both give the same answers, in any
 * order of calls. Thread-safe.
 */
public final class AppendStatement {
    // Indexes: the primary key of stream_partition, producer_batch_of_producer and producer_batch_head. Locks the
    // batch's rows of stream_partition, in the order of stream and partition, until the commit is visible.
    private static final String APPEND = "SELECT eventsql.append_v1(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

    // Indexes and locks: as APPEND. The function's name comes before it.
    private static final String ARGUMENTS_TO_STREAM = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" + CommitWarnings.COLUMN;

    private static final int[] NO_INTS = {};
    private static final String[] NO_TEXTS = {};

    private final SqlSchema schema;
    private final String append;
    private final AppendFunctions functions;

    public AppendStatement(SqlSchema schema) {
        this(schema, new AppendFunctions(schema, AppendFunctions.STREAMS_MAX, System::nanoTime));
    }

    AppendStatement(SqlSchema schema, AppendFunctions functions) {
        this.schema = schema;
        this.append = schema.sql(APPEND);
        this.functions = functions;
    }

    /**
     * A batch as the function takes it. The first four arrays have one element for each partition, sorted by stream id
     * and partition; the others one for each event, in the order of the partitions.
     *
     * @param values {@code null}: a tombstone
     * @param headers JSON objects or {@code null}
     */
    @SuppressWarnings("ArrayRecordComponent") // arrays go to the driver as they are
    public record Rows(
            String[] streams,
            int[] streamIds,
            int[] partitions,
            int[] counts,
            @Nullable String[] keys,
            byte[] @Nullable [] values,
            @Nullable String[] headers) {

        /** Returns the partition of each event, as an index from 1 into the first four arrays. */
        private int[] groups() {
            int[] groups = new int[values.length];
            int row = 0;
            for (int g = 0; g < counts.length; g++) {
                Arrays.fill(groups, row, row + counts[g], g + 1);
                row += counts[g];
            }
            return groups;
        }

        /** Returns the position of each event among the events of its partition, from 0. */
        private int[] indexes() {
            int[] indexes = new int[values.length];
            int row = 0;
            for (int count : counts) {
                for (int i = 0; i < count; i++) {
                    indexes[row++] = i;
                }
            }
            return indexes;
        }
    }

    /** The database committed, but returned a warning: the commit may not have reached the synchronous replicas. */
    public static final class WarnedException extends SQLException {
        private static final long serialVersionUID = 1L;

        WarnedException(SQLException warning) {
            super("The database returned a warning: " + warning.getMessage(), "01000", warning);
        }
    }

    /**
     * Appends the batch, or finds the batch of this number that is stored already: in autocommit mode, where the batch is
     * then committed, or in the caller's transaction.
     *
     * @param incarnation that of the database when the ids of the streams were read; {@code null}: not compared
     * @return the base offset of each partition
     * @throws SQLException see {@link SqlErrors}; {@link WarnedException} if the batch is in doubt, only in autocommit mode
     */
    public long[] execute(
            Connection connection, UUID producer, long number, MapFence maps, @Nullable String incarnation, Rows rows)
            throws SQLException {
        return append(
                functions,
                connection,
                incarnation,
                rows.streamIds(),
                () -> appendToStream(connection, producer, number, maps, incarnation, rows),
                () -> appendToStreams(connection, producer, number, maps, incarnation, rows));
    }

    /** The call of an append function; returns the base offset of each partition. */
    @FunctionalInterface
    interface Call {
        long[] execute() throws SQLException;
    }

    /**
     * Appends by the function of the batch's stream, or else by the one that serves all streams: if the batch has several, or if
     * the stream's own cannot be called, which then has stored nothing.
     *
     * @param streamIds of the partitions of the batch, sorted
     */
    static long[] append(
            AppendFunctions functions,
            Connection connection,
            @Nullable String incarnation,
            int[] streamIds,
            Call ofStream,
            Call ofAll)
            throws SQLException {
        int streamId = streamIds[0];
        boolean hasOneStream = streamId == streamIds[streamIds.length - 1];
        if (!hasOneStream || !functions.isUsable(connection, incarnation, streamId)) {
            return ofAll.execute();
        }
        try {
            return ofStream.execute();
        } catch (SQLException e) {
            if (!SqlErrors.isUnusableFunction(e)) {
                throw e;
            }
            functions.reject(incarnation, streamId);
            if (!connection.getAutoCommit()) { // the transaction is aborted; its next attempt uses the other function
                throw new SQLException(SqlErrors.message(e), SqlErrors.SERIALIZATION_FAILURE, e);
            }
            return ofAll.execute();
        }
    }

    private long[] appendToStream(
            Connection connection, UUID producer, long number, MapFence maps, @Nullable String incarnation, Rows rows)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        boolean onePartition = rows.partitions().length == 1;
        String sql = "SELECT " + functions.name(rows.streamIds()[0]) + ARGUMENTS_TO_STREAM;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            setBatch(connection, statement, producer, number, maps, incarnation);
            statement.setString(6, rows.streams()[0]);
            statement.setArray(7, pg.createArrayOf("int4", rows.partitions()));
            statement.setArray(8, pg.createArrayOf("int4", rows.counts()));
            statement.setArray(9, pg.createArrayOf("int4", onePartition ? NO_INTS : rows.groups()));
            statement.setArray(10, pg.createArrayOf("int4", onePartition ? NO_INTS : rows.indexes()));
            statement.setArray(11, pg.createArrayOf("text", orEmpty(rows.keys())));
            statement.setArray(12, pg.createArrayOf("bytea", rows.values()));
            statement.setArray(13, pg.createArrayOf("text", orEmpty(rows.headers())));
            return execute(connection, statement);
        }
    }

    /** The function reads what an array lacks at its end as NULL, so one without any text needs no elements. */
    private static @Nullable String[] orEmpty(@Nullable String[] texts) {
        for (String text : texts) {
            if (text != null) {
                return texts;
            }
        }
        return NO_TEXTS;
    }

    private long[] appendToStreams(
            Connection connection, UUID producer, long number, MapFence maps, @Nullable String incarnation, Rows rows)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        int before = maps.parameters();
        String sql = maps.precede(schema, append) + CommitWarnings.COLUMN;
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            maps.set(connection, statement, producer, number, rows.streamIds(), rows.partitions());
            setBatch(before, connection, statement, producer, number, maps, incarnation);
            setRows(before + 5, pg, statement, rows);
            return execute(connection, statement);
        }
    }

    /**
     * Sets the parameters of the events for the functions that serve all streams.
     *
     * @param before the number of parameters before them
     */
    static void setRows(int before, PGConnection pg, PreparedStatement statement, Rows rows) throws SQLException {
        int next = before;
        statement.setArray(++next, pg.createArrayOf("text", rows.streams()));
        statement.setArray(++next, pg.createArrayOf("int4", rows.streamIds()));
        statement.setArray(++next, pg.createArrayOf("int4", rows.partitions()));
        statement.setArray(++next, pg.createArrayOf("int4", rows.counts()));
        statement.setArray(++next, pg.createArrayOf("int4", rows.groups()));
        statement.setArray(++next, pg.createArrayOf("int4", rows.indexes()));
        statement.setArray(++next, pg.createArrayOf("text", rows.keys()));
        statement.setArray(++next, pg.createArrayOf("bytea", rows.values()));
        statement.setArray(++next, pg.createArrayOf("text", rows.headers()));
    }

    /** Sets the parameters that all append functions begin with. */
    static void setBatch(
            Connection connection,
            PreparedStatement statement,
            UUID producer,
            long number,
            MapFence maps,
            @Nullable String incarnation)
            throws SQLException {
        setBatch(0, connection, statement, producer, number, maps, incarnation);
    }

    /** @param before the number of parameters before them */
    static void setBatch(
            int before,
            Connection connection,
            PreparedStatement statement,
            UUID producer,
            long number,
            MapFence maps,
            @Nullable String incarnation)
            throws SQLException {
        statement.setObject(before + 1, producer);
        statement.setLong(before + 2, number);
        statement.setObject(before + 3, maps.version(), Types.INTEGER);
        statement.setString(before + 4, incarnation);
        statement.setInt(before + 5, NetworkTimeout.timeLimitMs(connection));
    }

    /** Executes the call of an append function, and returns the base offset of each partition. */
    static long[] execute(Connection connection, PreparedStatement statement) throws SQLException {
        try (ResultSet result = statement.executeQuery()) {
            result.next();
            if (connection.getAutoCommit()) { // otherwise the commit is still to come
                SqlErrors.requireNoDoubt(statement.getWarnings());
            }
            return firstOffsets(result);
        }
    }

    /** Returns the base offsets, which are the first column of the result's current row. */
    static long[] firstOffsets(ResultSet result) throws SQLException {
        Long[] bases = (Long[]) result.getArray(1).getArray();
        return Arrays.stream(bases).mapToLong(Long::longValue).toArray();
    }
}
