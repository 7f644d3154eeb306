package io.eventsql.internal.sql;

import java.sql.Connection;
import java.sql.SQLException;
import java.util.UUID;

/**
 * {@code incarnation}: identifies the history of a database. A failover, a restart and a restore change it; what a process
 * remembers of the database counts only while it stays the same.
 */
public final class IncarnationTable {
    // Reads one row; locks it only to record that the database was restored or copied.
    private static final String FIND = "SELECT eventsql.find_incarnation_v1()";

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
        if (Jooq.using(connection).fetchValue(schema.sql(FIND)) instanceof String incarnation) {
            return incarnation;
        }
        throw new SQLException(
                "the table " + schema.name() + ".incarnation is empty or has no primary key yet: the database is being"
                        + " restored, or was restored without it; when the restore is complete, call " + schema.name()
                        + ".declare_restored('reason')",
                SqlErrors.OTHER_INCARNATION);
    }
}
