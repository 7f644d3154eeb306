package io.eventsql.internal.shard;

import java.sql.SQLException;

/**
 * What a component remembers of a shard's database, to be compared with the database when that has another incarnation: it
 * may have gone back in time.
 */
@FunctionalInterface
public interface Anchors {
    /**
     * Compares what is remembered with what is stored, and forgets what is wrong. Until it returns, the database rejects
     * every statement of this process that depends on something remembered.
     *
     * @return reports what was lost; run when the new incarnation is in use
     * @throws SQLException if the database is unavailable; the comparison is then repeated later
     */
    Runnable compare(Shard shard) throws SQLException;

    /** Forgets a stream that this process has deleted, because nothing of it is lost. */
    default void forget(String stream) {}
}
