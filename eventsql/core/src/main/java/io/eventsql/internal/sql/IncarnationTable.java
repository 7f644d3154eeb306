package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * {@code incarnation}: identifies the history of a database. A failover, a restart and a restore change it; what a process
 * remembers of the database counts only while it stays the same.
 */
public final class IncarnationTable {
    // Reads one row; locks it only to record that the database was restored or copied.
    private static final String FIND = "SELECT eventsql.find_incarnation_v1()";

    // As above, on a server that accepts writes; empty on any other one.
    private static final String FIND_ON_PRIMARY = """
            SELECT CASE WHEN NOT current_setting('transaction_read_only')::boolean
                        THEN eventsql.find_incarnation_v1() ELSE '' END""";

    private static final int ID_LENGTH = 36;

    private final SqlSchema schema;

    public IncarnationTable(SqlSchema schema) {
        this.schema = schema;
    }

    /** Returns the id that is part of an incarnation: unique among all databases, also among copies of one. */
    public static UUID id(String incarnation) {
        return UUID.fromString(incarnation.substring(0, ID_LENGTH));
    }

    /**
     * Returns the incarnation. If the database was restored or copied since the last one was recorded, records a new one.
     *
     * @throws SQLException {@link SqlErrors#OTHER_INCARNATION} if none is recorded: the restore is in progress or incomplete
     */
    public String find(Connection connection) throws SQLException {
        return require(Jooq.using(connection).fetchValue(schema.sql(FIND)));
    }

    /**
     * Returns the incarnation as {@link #find} does, but not that of a server in recovery: it may still replay events that
     * it has received, so nothing can be compared with it.
     *
     * @throws SQLException {@link SqlErrors#READ_ONLY} if the server is in recovery, or read-only for another reason
     */
    public String findOnPrimary(Connection connection) throws SQLException {
        String incarnation = require(Jooq.using(connection).fetchValue(schema.sql(FIND_ON_PRIMARY)));
        if (incarnation.isEmpty()) {
            throw new SQLException(
                    "the database is read-only: it is a standby, or is being recovered", SqlErrors.READ_ONLY);
        }
        return incarnation;
    }

    private String require(@Nullable Object found) throws SQLException {
        if (found instanceof String incarnation) {
            return incarnation;
        }
        throw new SQLException(
                "the table " + schema.name() + ".incarnation is empty or has no primary key yet: the database is being"
                        + " restored, or was restored without it; when the restore is complete, call " + schema.name()
                        + ".declare_restored('reason')",
                SqlErrors.OTHER_INCARNATION);
    }
}
