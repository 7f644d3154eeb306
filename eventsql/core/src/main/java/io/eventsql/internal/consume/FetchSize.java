package io.eventsql.internal.consume;

import java.util.concurrent.TimeUnit;

/**
 * How many events of a partition to fetch at a time. A fetch costs the database about the same whether it returns ten events
 * or a hundred, so where pages are small and the handler is fast, one fetch brings many pages.
 *
 * <p>The control law: as many events as the handler lately handled in 100 ms, at least a page and at most 1,000, in steps of
 * four: a page, four pages, 16 and so on. The handler's speed is the number of events below the handled offset per time in
 * which it had events. That is not the time that fetches take, so a database that answers slowly is not asked for less. With
 * a handler that needs more than 25 ms for a page no further page is fetched in advance, as if there were no such law.
 *
 * <p>Not thread-safe. Times are those of {@link System#nanoTime}.
 */
final class FetchSize {
    static final int EVENTS_MAX = 1_000;

    private static final long AHEAD_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final int STEP = 4;

    private final int pageEvents;
    /** Events handled and the time that took; half of both is kept at each fetch, so that the last ones count most. */
    private double events;

    private double nanos;
    private long countedOffset;
    private boolean isBusy;
    private long busySince;

    FetchSize(int pageEvents, long handledOffset) {
        this.pageEvents = pageEvents;
        this.countedOffset = handledOffset;
    }

    /** The handler has events from now on. */
    void beginHandling(long now) {
        isBusy = true;
        busySince = now;
    }

    /** The handler has handled everything that was fetched, or waits for an event that is in a lane. */
    void endHandling(long handledOffset, long now) {
        count(handledOffset, now);
        isBusy = false;
    }

    /**
     * Returns how many events to fetch now.
     *
     * @param eventsMax the most that there is memory for; exceeded only by a single page
     */
    int events(long handledOffset, long now, long eventsMax) {
        count(handledOffset, now);
        double handled = events == 0 ? 0 : events * AHEAD_NANOS / Math.max(1, nanos);
        double wanted = Math.min(handled, (double) eventsMax);
        if (wanted >= EVENTS_MAX) {
            return Math.max(pageEvents, EVENTS_MAX);
        }
        int size = pageEvents;
        while (size * STEP <= wanted) {
            size *= STEP;
        }
        return size;
    }

    /** Records that a fetch begins. */
    void beginFetch() {
        events /= 2;
        nanos /= 2;
    }

    private void count(long handledOffset, long now) {
        events += handledOffset - countedOffset;
        countedOffset = handledOffset;
        if (isBusy) {
            nanos += now - busySince;
            busySince = now;
        }
    }
}
