package io.eventsql.internal.consume;

import io.eventsql.Storage;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.FetchedPage;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.StreamsFetchStatement.StreamRequest;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches from one shard, in rounds, what the members of this process want. Members that read the same stream share a fetch
 * ({@link SharedRequests}), and streams share a statement, except for a busy stream, which has a fetch function of its own
 * ({@link FetchFunctions}), one that is far behind, whose pages are large, and one whose last fetch failed ({@link
 * FailingStreams}). Used by the fetcher's thread alone.
 */
final class FetchRounds {
    private static final Logger LOG = LoggerFactory.getLogger(FetchRounds.class);
    /** The most streams that are fetched by one statement. */
    private static final int STREAMS_MAX = 200;
    /** The most events of a page of such a fetch, whose pages are all in memory at once. */
    private static final int TOGETHER_EVENTS_MAX = 50;

    private final Shard shard;
    private final FetchSchedule schedule;
    private final PageReader reader;
    private final FailingStreams failing;

    private int rotation;

    FetchRounds(Shard shard, FetchSchedule schedule, PageReader reader, FailingStreams failing) {
        this.shard = shard;
        this.schedule = schedule;
        this.reader = reader;
        this.failing = failing;
    }

    /** What fetches have left. */
    enum Outcome {
        /** Nothing was requested: nothing is wanted, or the members have no memory for further pages. */
        NOT_REQUESTED,
        /** All that there was is fetched. */
        FETCHED,
        /** There are more events, or more members. */
        MORE;

        Outcome and(Outcome other) {
            return compareTo(other) >= 0 ? this : other;
        }
    }

    /** What members have in common that are fetched for together: a stream of one incarnation, and how much to fetch. */
    private record Source(int streamId, String incarnation, int maxEvents) {}

    /** What streams have in common that are fetched together. */
    private record Group(Storage storage, String incarnation) {}

    /** A member that wants pages, as what it was when the fetch began. */
    private record Reader(Subscriber subscriber, Membership membership) {}

    /** The members that want pages of a source. */
    private record Wanted(int maxEvents, List<Reader> readers) {
        Membership membership() {
            return readers.getFirst().membership();
        }

        int streamId() {
            return membership().streamId();
        }

        boolean isBehind() {
            return readers.stream().anyMatch(one -> one.subscriber().member().isBehind());
        }
    }

    /** The requests for members that read the same stream: where they are at the same offset, one page for all. */
    private static final class StreamFetch {
        final Wanted wanted;
        final int maxEvents;
        final SharedRequests<Subscriber> requests = new SharedRequests<>();
        boolean hasMore;

        StreamFetch(Wanted wanted, int maxEvents) {
            this.wanted = wanted;
            this.maxEvents = maxEvents;
        }

        void request() {
            for (Reader one : wanted.readers()) {
                if (requests.isFull()) {
                    hasMore = true; // the rest in the next round
                    return;
                }
                for (Assignment assignment : one.subscriber().member().rotateAssignments()) {
                    if (assignment.isOf(one.membership())) {
                        assignment
                                .beginFetch(maxEvents)
                                .ifPresent(request -> requests.add(one.subscriber(), assignment, request));
                    }
                }
            }
        }

        boolean isEmpty() {
            return requests.isEmpty();
        }

        List<StreamRequest> streamRequests() {
            String stream = wanted.membership().stream().name();
            return requests.requests().stream()
                    .map(request -> new StreamRequest(wanted.streamId(), stream, maxEvents, request))
                    .toList();
        }

        Outcome outcome() {
            if (isEmpty()) {
                return Outcome.NOT_REQUESTED;
            }
            return hasMore ? Outcome.MORE : Outcome.FETCHED;
        }
    }

    /** Fetches once for each member that wants pages. */
    Outcome fetch(List<Subscriber> subscribers) throws SQLException {
        List<Wanted> alone = new ArrayList<>();
        Map<Group, List<Wanted>> groups = new LinkedHashMap<>();
        for (Wanted wanted : wanted(subscribers)) {
            Membership membership = wanted.membership();
            if (reader.hasFunction(membership) || failing.contains(wanted.streamId()) || wanted.isBehind()) {
                alone.add(wanted);
            } else {
                Group group = new Group(membership.stream().storage(), membership.incarnation());
                groups.computeIfAbsent(group, g -> new ArrayList<>()).add(wanted);
            }
        }
        Outcome outcome = Outcome.NOT_REQUESTED;
        for (Map.Entry<Group, List<Wanted>> group : groups.entrySet()) {
            List<Wanted> streams = group.getValue();
            for (int from = 0; from < streams.size(); from += STREAMS_MAX) {
                List<Wanted> some = streams.subList(from, Math.min(from + STREAMS_MAX, streams.size()));
                outcome = outcome.and(some.size() == 1 ? fetch(some.getFirst()) : fetchTogether(group.getKey(), some));
            }
        }
        return outcome.and(fetchEach(alone));
    }

    /** Returns whether pages are to be fetched for the member now. */
    boolean wantsPages(Subscriber subscriber) {
        ShardMember member = subscriber.member();
        return member.wantsPages() && !failing.isPaused(member.streamId());
    }

    /** Another member is the first one each time: not all may fit into a fetch. */
    private Collection<Wanted> wanted(List<Subscriber> subscribers) {
        Map<Source, Wanted> wanted = new LinkedHashMap<>();
        List<Subscriber> rotated = new ArrayList<>(subscribers);
        Collections.rotate(rotated, rotation++);
        for (Subscriber subscriber : rotated) {
            if (wantsPages(subscriber)) {
                Membership membership = subscriber.member().membership();
                Source source = new Source(
                        membership.streamId(),
                        membership.incarnation(),
                        subscriber.member().fetchEvents());
                wanted.computeIfAbsent(source, s -> new Wanted(s.maxEvents(), new ArrayList<>()))
                        .readers()
                        .add(new Reader(subscriber, membership));
            }
        }
        return wanted.values();
    }

    /**
     * Fetches for members that read the same stream. A failure of the stream alone is recorded.
     *
     * @throws SQLException if none of the shard's streams can be fetched
     */
    private Outcome fetch(Wanted wanted) throws SQLException {
        StreamFetch fetch = new StreamFetch(wanted, wanted.maxEvents());
        long begun = System.nanoTime();
        try {
            fetch.request();
            if (!fetch.isEmpty()) {
                deliver(fetch, reader.read(wanted.membership(), fetch.requests.requests(), fetch.maxEvents));
                failing.succeeded(wanted.membership());
            }
        } catch (SQLException | RuntimeException e) {
            if (concernsAll(e, wanted.membership().incarnation())) {
                throw e;
            }
            failing.failed(wanted.membership(), e, System.nanoTime() - begun);
            return Outcome.NOT_REQUESTED;
        } finally { // whatever happened, the other pages are still wanted
            fetch.requests.abortRest();
        }
        return fetch.outcome();
    }

    /** Returns whether a failure says something about the shard: that it is unavailable, or has another incarnation. */
    private boolean concernsAll(Exception e, String incarnation) throws SQLException {
        return shard.recheckAfter(e, incarnation)
                || SqlErrors.isConnectionLost(e)
                || (e instanceof SQLException sql && SqlErrors.classify(sql) == ErrorKind.NOT_SENT);
    }

    /**
     * Fetches new events of several streams. If that fails, because of one of them perhaps, fetches for each by itself, and
     * from then on for those that fail.
     */
    private Outcome fetchTogether(Group group, List<Wanted> streams) throws SQLException {
        List<StreamFetch> fetches = streams.stream()
                .map(wanted -> new StreamFetch(wanted, Math.min(wanted.maxEvents(), TOGETHER_EVENTS_MAX)))
                .toList();
        Outcome outcome = Outcome.NOT_REQUESTED;
        try {
            List<StreamRequest> requests = new ArrayList<>();
            for (StreamFetch fetch : fetches) {
                fetch.request();
                requests.addAll(fetch.streamRequests());
            }
            if (requests.isEmpty()) {
                return outcome;
            }
            List<FetchedPage> pages = reader.readStreams(group.incarnation(), group.storage(), requests);
            int from = 0;
            for (StreamFetch fetch : fetches) {
                int to = from + fetch.requests.requests().size();
                deliver(fetch, pages.subList(from, to));
                from = to;
                outcome = outcome.and(fetch.outcome());
            }
            return outcome;
        } catch (SQLException | RuntimeException e) {
            if (concernsAll(e, group.incarnation())) {
                throw e;
            }
            LOG.debug("Fetching several streams from {} failed; fetching each by itself", shard, e);
        } finally {
            fetches.forEach(fetch -> fetch.requests.abortRest());
        }
        return fetchEach(streams);
    }

    private Outcome fetchEach(List<Wanted> streams) throws SQLException {
        Outcome outcome = Outcome.NOT_REQUESTED;
        for (Wanted wanted : streams) {
            outcome = outcome.and(fetch(wanted));
        }
        return outcome;
    }

    private void deliver(StreamFetch fetch, List<FetchedPage> pages) throws SQLException {
        Membership membership = fetch.wanted.membership();
        boolean isAnyRead = false;
        for (FetchedPage page : pages) {
            boolean isRead = !page.isEmpty();
            boolean hasMore = isRead && !page.endsAtHead();
            schedule.recordPage(membership.streamId(), page.events().size(), hasMore);
            fetch.hasMore |= hasMore;
            isAnyRead |= isRead;
        }
        if (isAnyRead) {
            reader.recordFetch(membership);
            schedule.recordStream();
        }
        fetch.requests.deliver(
                CompactedGaps.mark(shard, membership, fetch.requests.assignments(), pages), this::deliver);
    }

    private void deliver(Subscriber subscriber, Assignment assignment, FetchedPage page) {
        if (assignment.acceptPage(page)) {
            subscriber.dispatcher().start(assignment);
        } else if (assignment.hasEmptyRange()) {
            schedule.requestPoll();
        }
    }
}
