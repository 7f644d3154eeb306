package io.eventsql.internal.consume;

import java.util.concurrent.TimeUnit;

/**
 * How often to fetch from a shard. A fetch costs the database about the same whether it returns one event or twenty, so
 * fetches become rarer when events come more often, and each returns more of them.
 *
 * <p>The control law: two fetches begin at least {@code 5 ms × r / (r + 700)} apart, where {@code r} is the number of events
 * per second that were fetched lately, averaged over about 50 ms. That is 3 ms at 1,000 events/s and never more than 5 ms; an
 * event waits for half of it on average. After a pause r is almost 0, so that a single event is fetched at once. Nor does a
 * fetch begin before twice the duration of the last one that returned few events has passed, at most 20 ms: a database that
 * answers slowly is asked less often. The interval depends on nothing that it changes itself: r is what is published,
 * however it is divided among fetches. So it does not oscillate.
 *
 * <p>Without a signal, the next probe follows after that interval, but after at least 1 ms, and after twice the time for each
 * fetch in a row that has returned nothing, up to 8 ms.
 *
 * <p>Used by one thread. Times are those of {@link System#nanoTime}.
 */
final class FetchPace {
    static final long INTERVAL_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(5);
    /** The rate at which the interval is half of its maximum. */
    private static final double HALF_EVENTS_PER_SECOND = 700;

    private static final double AVERAGED_NANOS = TimeUnit.MILLISECONDS.toNanos(50);
    private static final int FEW_EVENTS = 20;
    private static final int DURATIONS = 2;
    private static final long DURATIONS_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(20);

    private static final long PROBE_NANOS_MIN = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long PROBE_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(8);

    private long fetchedAt;
    private double eventsPerNano;
    private long durationNanos;
    private int emptyFetches;

    /** @param now when nothing was fetched yet */
    FetchPace(long now) {
        fetchedAt = now;
    }

    /** Records a fetch, all its round trips together. */
    void record(long begin, long end, int events) {
        eventsPerNano = (eventsPerNano * AVERAGED_NANOS + events) / (AVERAGED_NANOS + Math.max(0, begin - fetchedAt));
        fetchedAt = begin;
        // Few events would have taken no longer. Without this, one slow fetch would count until few are fetched again,
        // which
        // the longer interval itself prevents.
        durationNanos = events < FEW_EVENTS ? end - begin : Math.min(durationNanos, end - begin);
        emptyFetches = events == 0 ? emptyFetches + 1 : 0;
    }

    /** Returns the shortest time from the beginning of the last fetch to that of the next one. */
    long intervalNanos() {
        double eventsPerSecond = eventsPerNano * TimeUnit.SECONDS.toNanos(1);
        double byRate = INTERVAL_NANOS_MAX * eventsPerSecond / (eventsPerSecond + HALF_EVENTS_PER_SECOND);
        return Math.max((long) byRate, Math.min(DURATIONS * durationNanos, DURATIONS_NANOS_MAX));
    }

    /** Returns the time from the beginning of the last fetch to that of the next one which no signal has requested. */
    long probeNanos() {
        long first = Math.max(PROBE_NANOS_MIN, intervalNanos());
        long doubled = first << Math.min(emptyFetches, Long.numberOfTrailingZeros(PROBE_NANOS_MAX / PROBE_NANOS_MIN));
        return Math.max(first, Math.min(doubled, PROBE_NANOS_MAX));
    }
}
