package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/**
 * The statement that appends a batch of which some calls expect a version of their key: one round trip. Thread-safe.
 */
public final class ExpectedAppendStatement {
    // Indexes and locks: those of an append (AppendStatement), then the rows of the keys in key_version.
    private static final String APPEND =
            "SELECT eventsql.append_expected_v1(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

    private final SqlSchema schema;
    private final String append;

    public ExpectedAppendStatement(SqlSchema schema) {
        this.schema = schema;
        this.append = schema.sql(APPEND);
    }

    /**
     * What the calls of a batch expect. A step is a call that expects a version, or an event of another call with a key of such
     * a call.
     *
     * @param ofEvents for each event its step, from 1; 0: its key has none
     * @param keys for each step its key, as an index from 1
     * @param expected for each step the expected version; {@code null}: any
     * @param counts for each step the number of its events
     * @param keyGroups for each key its partition, as an index from 1 into those of the rows
     * @param keyNames the keys
     */
    @SuppressWarnings("ArrayRecordComponent") // arrays go to the driver as they are
    public record Steps(
            int[] ofEvents, int[] keys, @Nullable Long[] expected, int[] counts, int[] keyGroups, String[] keyNames) {}

    /**
     * The outcome of a batch.
     *
     * @param firstOffsets the base offset of each partition
     * @param conflicts pairs of a step that was not stored, from 1, and the version that its key had
     */
    @SuppressWarnings("ArrayRecordComponent") // arrays come from the driver as they are
    public record Outcome(long[] firstOffsets, long[] conflicts) {}

    /** Appends the batch, or finds the outcome of this number: see {@link AppendStatement#execute}. */
    public Outcome execute(
            Connection connection,
            UUID producer,
            long number,
            MapFence maps,
            @Nullable String incarnation,
            AppendStatement.Rows rows,
            Steps steps)
            throws SQLException {
        PGConnection pg = connection.unwrap(PGConnection.class);
        int before = maps.parameters();
        // OFFSET 0: otherwise each of its columns would be a call of its own.
        String sql = "SELECT (r).bases, (r).conflicts" + CommitWarnings.COLUMN + " FROM ("
                + maps.precede(schema, append) + " OFFSET 0) AS result (r)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            maps.set(connection, statement, producer, number, rows.streamIds(), rows.partitions());
            AppendStatement.setBatch(before, connection, statement, producer, number, maps, incarnation);
            AppendStatement.setRows(before + 5, pg, statement, rows);
            statement.setArray(before + 15, pg.createArrayOf("int4", steps.ofEvents()));
            statement.setArray(before + 16, pg.createArrayOf("int4", steps.keys()));
            statement.setArray(before + 17, pg.createArrayOf("int8", steps.expected()));
            statement.setArray(before + 18, pg.createArrayOf("int4", steps.counts()));
            statement.setArray(before + 19, pg.createArrayOf("int4", steps.keyGroups()));
            statement.setArray(before + 20, pg.createArrayOf("text", steps.keyNames()));
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                if (connection.getAutoCommit()) { // otherwise the commit is still to come
                    SqlErrors.requireNoDoubt(statement.getWarnings());
                }
                Long[] conflicts = (Long[]) result.getArray(2).getArray();
                return new Outcome(
                        AppendStatement.firstOffsets(result),
                        Arrays.stream(conflicts).mapToLong(Long::longValue).toArray());
            }
        }
    }
}
