package io.eventsql.internal.consume;

import io.eventsql.internal.sql.FetchStatement.Request;
import io.eventsql.internal.sql.FetchedPage;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The pages that some members of one stream want of a shard, to be fetched together. Members that are at the same offset of a
 * partition share a page: it is read once, and each of them receives events of its own, which its handlers may change. Each
 * assignment still reserves memory for its page, checks it and continues from there by itself. Used by one thread.
 *
 * @param <R> what receives the pages of an assignment
 */
final class SharedRequests<R> {
    /** No further member joins from this number of requests on: their pages arrive all at once. */
    private static final int REQUESTS_FULL = 100;

    private final List<Wanted<R>> wanted = new ArrayList<>();
    private final List<Request> requests = new ArrayList<>();
    private final List<Assignment> assignments = new ArrayList<>();
    private final Map<Start, Integer> pages = new HashMap<>();
    /** Of each page the last one that wants it, by its number in {@link #wanted}. */
    private final List<Integer> lastWanted = new ArrayList<>();

    private int delivered;

    private record Start(int partition, long offset) {}

    /** An assignment that wants a page, and the number of that page. */
    private record Wanted<R>(R receiver, Assignment assignment, int page) {}

    /** Receives a page. */
    @FunctionalInterface
    interface Delivery<R> {
        void deliver(R receiver, Assignment assignment, FetchedPage page);
    }

    /** Adds a request of an assignment that has begun a fetch. */
    void add(R receiver, Assignment assignment, Request request) {
        Start start = new Start(request.partition(), request.fromOffset());
        int page = pages.getOrDefault(start, requests.size());
        if (page == requests.size()) {
            pages.put(start, page);
            requests.add(request);
            assignments.add(assignment);
            lastWanted.add(wanted.size());
        } else {
            if (request.maxBytes() < requests.get(page).maxBytes()) { // no page exceeds what its members have reserved
                requests.set(page, request);
            }
            lastWanted.set(page, wanted.size());
        }
        wanted.add(new Wanted<>(receiver, assignment, page));
    }

    boolean isEmpty() {
        return wanted.isEmpty();
    }

    boolean isFull() {
        return requests.size() >= REQUESTS_FULL;
    }

    /** Returns the requests, each once. */
    List<Request> requests() {
        return requests;
    }

    /** Returns the first assignment of each request. */
    List<Assignment> assignments() {
        return assignments;
    }

    /**
     * Delivers the pages of the requests, in their order, to all assignments that want them. The last one receives the page
     * itself: handlers begin at once, and may change what is still to be copied.
     */
    void deliver(List<FetchedPage> fetched, Delivery<R> delivery) {
        while (delivered < wanted.size()) {
            boolean isLast = lastWanted.get(wanted.get(delivered).page()) == delivered;
            Wanted<R> next = wanted.get(delivered++);
            FetchedPage page = fetched.get(next.page());
            delivery.deliver(next.receiver(), next.assignment(), isLast ? page : page.copy());
        }
    }

    /** Ends the fetches of those that have received no page: their pages are still wanted. */
    void abortRest() {
        while (delivered < wanted.size()) {
            wanted.get(delivered++).assignment().abortFetch();
        }
    }
}
