package io.eventsql.internal.consume;

import io.eventsql.internal.pace.RateInterval;
import java.util.concurrent.TimeUnit;

/**
 * How often to fetch from a shard. Two fetches begin almost {@link RateInterval} apart, by the rate of the events fetched.
 * Nor does a fetch begin before twice the average duration of the last eight or so that returned few events has passed, at
 * most 20 ms: a database that answers slowly is asked less often. It is an average because one slow fetch says nothing about
 * the next one, and waiting after it would add to the latency of the events that it has already delayed. What a fetch from many
 * streams takes counts by the ten: while it waits, more streams get events, which would keep the wait long.
 *
 * <p>Fetches follow commits. One publisher commits as regularly as it is fetched from, by the same law, so that by chance its
 * events could wait for a whole interval each time. Therefore fetches are a thirty-second closer together than commits, and
 * each comes a little sooner after a commit than the last one did, until one comes before it and returns nothing. After
 * fetches that returned events this means that a commit is under way, so the next fetch begins as soon as the database's
 * speed allows, and the one after that after the usual interval: a commit may have been slow. Where there is no such
 * regularity, fetches are a thirty-second more frequent, and some more.
 *
 * <p>Without a signal, the next probe follows after that interval, but after at least 1 ms, and after twice the time for each
 * fetch in a row that has returned nothing, up to 8 ms.
 *
 * <p>Used by one thread. Times are those of {@link System#nanoTime}.
 */
final class FetchPace {
    /** As commits have it with the default of {@code maxCommitDelay}. */
    static final long RATE_INTERVAL_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(5);
    /** What an interval is shorter than that of the commits: this part of it. */
    private static final int ADVANCE_DIVISOR = 32;
    /** So many fetches in a row that returned events show that one which did not came just too early. */
    private static final int REGULAR_FETCHES = 2;

    private static final int FEW_EVENTS = 20;
    /** A fetch from more streams takes longer for each of them, however busy the database is. */
    private static final int FEW_STREAMS = 10;

    private static final int DURATIONS = 2;
    private static final long DURATION_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(10);
    /** The average moves towards the duration of the newest fetch by one in this number. */
    private static final int AVERAGED_FETCHES = 8;

    private static final long PROBE_NANOS_MIN = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long PROBE_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(8);

    private final RateInterval rate = new RateInterval(RATE_INTERVAL_NANOS_MAX);
    private long durationNanos;
    /** Fetches in a row that returned events. */
    private int filledFetches;
    /** How often the time until the next probe is doubled. */
    private int doublings;
    /** Whether the last fetch came just too early. */
    private boolean early;

    /**
     * Records a fetch, all its round trips together.
     *
     * @param streams the number of streams that it has returned events of
     */
    void record(long begin, long end, int events, int streams) {
        rate.record(events, begin);
        long ofFew = (end - begin) * FEW_STREAMS / Math.max(FEW_STREAMS, streams);
        long duration = Math.min(ofFew, DURATION_NANOS_MAX);
        // Few events would have taken no longer than many. Without this, slow fetches would count until few are fetched
        // again,
        // which the longer interval itself prevents.
        if (events < FEW_EVENTS || duration < durationNanos) {
            durationNanos += (duration - durationNanos) / AVERAGED_FETCHES;
        }
        boolean afterEarly = early;
        early = events == 0 && filledFetches >= REGULAR_FETCHES;
        filledFetches = events == 0 ? 0 : filledFetches + 1;
        doublings = events > 0 || early || afterEarly ? 0 : doublings + 1;
    }

    /** Returns the shortest time from the beginning of the last fetch to that of the next one. */
    long intervalNanos() {
        long byRate = early ? 0 : rate.nanos() - rate.nanos() / ADVANCE_DIVISOR;
        return Math.max(byRate, DURATIONS * durationNanos);
    }

    /** Returns the time from the beginning of the last fetch to that of the next one which no signal has requested. */
    long probeNanos() {
        if (early) {
            return intervalNanos();
        }
        long first = Math.max(PROBE_NANOS_MIN, intervalNanos());
        long doubled = first << Math.min(doublings, Long.numberOfTrailingZeros(PROBE_NANOS_MAX / PROBE_NANOS_MIN));
        return Math.max(first, Math.min(doubled, PROBE_NANOS_MAX));
    }
}
