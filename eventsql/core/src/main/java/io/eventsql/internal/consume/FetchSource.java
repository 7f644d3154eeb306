package io.eventsql.internal.consume;

import io.eventsql.internal.shard.Replica;
import io.eventsql.internal.shard.Replica.PageOf;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.FetchStatement;
import io.eventsql.internal.sql.FetchedPage;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Where the events of a shard are fetched from. Thread-safe. */
interface FetchSource {
    /** A statement that fetches pages. */
    @FunctionalInterface
    interface Fetch {
        /**
         * Executes the statement.
         *
         * @param incarnation to be compared by the statement; {@code null}: not to be compared
         */
        List<FetchedPage> execute(Connection connection, @Nullable String incarnation) throws SQLException;
    }

    /**
     * Executes a fetch.
     *
     * @param incarnation the incarnation of the primary that the ids in the fetch belong to
     * @param pagesOf where the pages belong to
     */
    List<FetchedPage> fetch(String incarnation, Supplier<List<PageOf>> pagesOf, Fetch fetch) throws SQLException;

    /** Returns the shard's primary server. */
    static FetchSource primary(Shard shard) {
        return (incarnation, pagesOf, fetch) ->
                shard.require().call(connection -> fetch.execute(connection, incarnation));
    }

    /**
     * Returns the shard's replica, and its primary while that is not usable. What is unusual on a replica is read again
     * from the primary, which alone is compared with the log: pages with gaps, and rows that cannot be read.
     */
    static FetchSource replica(Shard shard, Replica replica) {
        FetchSource primary = primary(shard);
        return (incarnation, pagesOf, fetch) -> {
            if (replica.isUsable()) {
                try {
                    Optional<List<FetchedPage>> pages =
                            replica.fetch(incarnation, pagesOf.get(), connection -> fetch.execute(connection, null));
                    if (pages.isPresent()) {
                        return pages.get();
                    }
                } catch (SQLException e) {
                    if (!FetchStatement.isCausedByRow(e)) {
                        throw e;
                    }
                }
            }
            return primary.fetch(incarnation, pagesOf, fetch);
        };
    }
}
