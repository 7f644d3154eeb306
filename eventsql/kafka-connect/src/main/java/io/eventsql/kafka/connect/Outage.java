package io.eventsql.kafka.connect;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A shard that is unavailable, and when to ask it again. Immutable.
 *
 * @param retryAtNanos when to ask again, by {@link System#nanoTime}
 * @param delayNanos the time between the last failure and that
 */
record Outage(long retryAtNanos, long delayNanos) {
    private static final long DELAY_MIN_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long DELAY_MAX_NANOS = Duration.ofSeconds(10).toNanos();
    /** An attempt that times out delays the other shards: how many times as long they have after it. */
    private static final int ATTEMPT_FACTOR = 10;

    /**
     * Returns the outage after a failed attempt. The delay doubles with each.
     *
     * @param former the outage before the attempt; {@code null}: the shard was available
     */
    static Outage after(@Nullable Outage former, long startNanos, long nowNanos) {
        long doubled = former == null ? DELAY_MIN_NANOS : 2 * former.delayNanos;
        long delay = Math.min(DELAY_MAX_NANOS, Math.max(doubled, ATTEMPT_FACTOR * (nowNanos - startNanos)));
        return new Outage(nowNanos + delay, delay);
    }

    boolean isOver(long nowNanos) {
        return nowNanos - retryAtNanos >= 0;
    }
}
