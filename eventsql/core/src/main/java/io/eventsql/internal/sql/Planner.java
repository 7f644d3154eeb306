package io.eventsql.internal.sql;

import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/**
 * Keeps the planner to index scans in index order. Statistics of a log are always behind or missing, and a plan made
 * from them (a bitmap scan and a sort for a page of 1,000 rows, a sequential scan of a small table full of dead
 * versions) is slower by an order of magnitude.
 *
 * <p>The settings are a first statement in front of the real one, sent in the same round trip. Both are one implicit
 * transaction, to which the settings are local: nothing stays on the connection.
 */
final class Planner {
    /** Put in front of a statement that is executed in autocommit mode; see {@link #rowsAfterSettings}. */
    static final String INDEX_ONLY = "SELECT set_config('enable_seqscan', 'off', true),"
            + " set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),"
            + " set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),"
            + " set_config('max_parallel_workers_per_gather', '0', true), set_config('jit', 'off', true),"
            + " set_config('plan_cache_mode', 'force_generic_plan', true); ";

    private Planner() {}

    /** Executes a statement that begins with {@link #INDEX_ONLY} and returns the rows of the real one. */
    static ResultSet rowsAfterSettings(PreparedStatement statement) throws SQLException {
        statement.execute();
        statement.getMoreResults();
        return statement.getResultSet();
    }
}
