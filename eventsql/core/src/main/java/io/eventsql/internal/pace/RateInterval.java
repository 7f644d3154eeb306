package io.eventsql.internal.pace;

import java.util.concurrent.TimeUnit;

/**
 * The interval between two commits or two fetches of a shard. Each costs the database about the same with one event as with
 * ten, so they become rarer, and each has more events, when events come more often.
 *
 * <p>The control law: two of them begin {@code max × r / (r + 1,000)} apart, where {@code r} is the number of events per
 * second lately, averaged over about 50 ms. With a maximum of 5 ms that is 0.5 ms at 100/s and 2.5 ms at 1,000/s; an event
 * waits for half of it on average. After a pause r is almost 0, so that a single event does not wait. r is what is published,
 * however it is divided among commits and fetches. The interval depends on nothing that it changes itself, so it does not
 * oscillate.
 *
 * <p>Not thread-safe. Times are those of {@link System#nanoTime}.
 */
public final class RateInterval {
    /** The rate at which the interval is half of its maximum. */
    private static final double HALF_PER_SECOND = 1_000;

    private static final double AVERAGED_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final long nanosMax;
    private double perNano;
    private long beganNanos;

    public RateInterval(long nanosMax) {
        this.nanosMax = nanosMax;
    }

    /** Records the beginning of a commit or fetch and the number of events, or of calls, that it had. */
    public void record(int events, long nowNanos) {
        double passed = perNano == 0 ? AVERAGED_NANOS : Math.max(0, nowNanos - beganNanos);
        perNano = (perNano * AVERAGED_NANOS + events) / (AVERAGED_NANOS + passed);
        beganNanos = nowNanos;
    }

    /** Returns the interval from the last beginning to the next one. */
    public long nanos() {
        double perSecond = perNano * TimeUnit.SECONDS.toNanos(1);
        return (long) (nanosMax * perSecond / (perSecond + HALF_PER_SECOND));
    }
}
