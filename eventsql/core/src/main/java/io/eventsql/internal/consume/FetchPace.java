package io.eventsql.internal.consume;

import io.eventsql.internal.pace.RateInterval;
import java.util.concurrent.TimeUnit;

/**
 * How often to fetch from a shard. Two fetches begin at least {@link RateInterval} apart, by the rate of the events fetched. Nor
 * does a fetch begin before twice the duration of the last one that returned few events has passed, at most 20 ms: a database
 * that answers slowly is asked less often.
 *
 * <p>Without a signal, the next probe follows after that interval, but after at least 1 ms, and after twice the time for each
 * fetch in a row that has returned nothing, up to 8 ms.
 *
 * <p>Used by one thread. Times are those of {@link System#nanoTime}.
 */
final class FetchPace {
    /** As commits have it with the default of {@code maxCommitDelay}. */
    static final long RATE_INTERVAL_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(5);

    private static final int FEW_EVENTS = 20;
    private static final int DURATIONS = 2;
    private static final long DURATIONS_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(20);

    private static final long PROBE_NANOS_MIN = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long PROBE_NANOS_MAX = TimeUnit.MILLISECONDS.toNanos(8);

    private final RateInterval rate = new RateInterval(RATE_INTERVAL_NANOS_MAX);
    private long durationNanos;
    private int emptyFetches;

    /** Records a fetch, all its round trips together. */
    void record(long begin, long end, int events) {
        rate.record(events, begin);
        // Few events would have taken no longer. Without this, one slow fetch would count until few are fetched again,
        // which
        // the longer interval itself prevents.
        durationNanos = events < FEW_EVENTS ? end - begin : Math.min(durationNanos, end - begin);
        emptyFetches = events == 0 ? emptyFetches + 1 : 0;
    }

    /** Returns the shortest time from the beginning of the last fetch to that of the next one. */
    long intervalNanos() {
        return Math.max(rate.nanos(), Math.min(DURATIONS * durationNanos, DURATIONS_NANOS_MAX));
    }

    /** Returns the time from the beginning of the last fetch to that of the next one which no signal has requested. */
    long probeNanos() {
        long first = Math.max(PROBE_NANOS_MIN, intervalNanos());
        long doubled = first << Math.min(emptyFetches, Long.numberOfTrailingZeros(PROBE_NANOS_MAX / PROBE_NANOS_MIN));
        return Math.max(first, Math.min(doubled, PROBE_NANOS_MAX));
    }
}
