package io.eventsql.internal.consume;

import io.eventsql.EventPosition;
import io.eventsql.Storage;
import io.eventsql.internal.shard.Replica.PageOf;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.FetchStatement;
import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.StreamsFetchStatement.StreamRequest;
import io.eventsql.internal.wake.WakeUpTarget;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads the pages that the fetcher requests, in one round trip: by the fetch function of a busy stream, otherwise by
 * {@code fetch_v2}; of several streams by {@code fetch_streams_v1}. A row that cannot be read does not hold up the others. Used by the fetcher's thread alone.
 */
final class PageReader {
    private static final Logger LOG = LoggerFactory.getLogger(PageReader.class);

    private final Shard shard;
    private final FetchSource source;
    private final WakeUpTarget fetcher;
    private final FetchFunctions functions;

    PageReader(Shard shard, FetchSource source, WakeUpTarget fetcher) {
        this.shard = shard;
        this.source = source;
        this.fetcher = fetcher;
        this.functions = new FetchFunctions(shard);
    }

    /** Creates or updates the fetch functions of busy streams, at intervals. */
    void checkFunctions() {
        functions.check();
    }

    /** Returns whether a member's stream is a busy one, which has a fetch function. */
    boolean hasFunction(Membership membership) {
        return functions.statement(membership) != null;
    }

    /** Records a fetch that has returned events. */
    void recordFetch(Membership membership) {
        functions.recordFetch(membership);
    }

    /**
     * Returns the page of each request, in their order; of several streams, with what has no plan of its own.
     *
     * @param storage that of all streams
     * @throws SQLException also if a row cannot be read: then read each stream by itself
     */
    List<FetchedPage> readStreams(String incarnation, Storage storage, List<StreamRequest> requests)
            throws SQLException {
        return source.fetch(
                incarnation,
                () -> pagesOf(requests),
                (connection, compared) ->
                        shard.tables().streamsFetch().execute(connection, compared, storage, shard.number(), requests));
    }

    private static List<PageOf> pagesOf(List<StreamRequest> requests) {
        return requests.stream()
                .map(one -> new PageOf(one.streamId(), one.request().partition()))
                .toList();
    }

    private static List<PageOf> pagesOf(Membership membership, List<Request> requests) {
        return requests.stream()
                .map(request -> new PageOf(membership.streamId(), request.partition()))
                .toList();
    }

    /**
     * Returns the page of each request, in their order.
     *
     * @param maxEvents the maximum number of events of each page
     */
    List<FetchedPage> read(Membership membership, List<Request> requests, int maxEvents) throws SQLException {
        try {
            return fetch(membership, requests, maxEvents);
        } catch (SQLException e) {
            if (!FetchStatement.isCausedByRow(e)) {
                throw e;
            }
            LOG.debug("Fetching from {} failed because of a row; fetching each partition by itself", shard, e);
        }
        List<FetchedPage> pages = new ArrayList<>();
        for (Request request : requests) {
            pages.add(readAlone(membership, request, maxEvents));
        }
        return pages;
    }

    /**
     * Reads one page; if a row of it cannot be read, only its first event. If not even that can be read, it becomes an event
     * that cannot be decoded.
     */
    private FetchedPage readAlone(Membership membership, Request request, int maxEvents) throws SQLException {
        for (int events = maxEvents; ; events = 1) {
            try {
                return fetch(membership, List.of(request), events).getFirst();
            } catch (SQLException e) {
                if (!FetchStatement.isCausedByRow(e)) {
                    throw e;
                }
                fetcher.wake(membership.streamId(), request.partition()); // more events follow the first one
                if (events == 1) {
                    EventPosition position = new EventPosition(
                            membership.stream().name(), shard.number(), request.partition(), request.fromOffset());
                    return FetchedPage.ofUnreadable(position, e);
                }
            }
        }
    }

    private List<FetchedPage> fetch(Membership membership, List<Request> requests, int maxEvents) throws SQLException {
        String statement = functions.statement(membership);
        if (statement != null) {
            try {
                return source.fetch(
                        membership.incarnation(),
                        () -> pagesOf(membership, requests),
                        (connection, compared) -> shard.tables()
                                .fetch()
                                .execute(
                                        statement,
                                        connection,
                                        compared,
                                        membership.streamId(),
                                        membership.stream(),
                                        shard.number(),
                                        requests,
                                        maxEvents));
            } catch (SQLException e) {
                if (!FetchStatement.isCausedByFunction(e)) {
                    throw e;
                }
                functions.drop(membership, e);
            }
        }
        return source.fetch(
                membership.incarnation(),
                () -> pagesOf(membership, requests),
                (connection, compared) -> shard.tables()
                        .fetch()
                        .execute(
                                connection,
                                compared,
                                membership.streamId(),
                                membership.stream(),
                                shard.number(),
                                requests,
                                maxEvents));
    }
}
