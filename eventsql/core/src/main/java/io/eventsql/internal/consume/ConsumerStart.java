package io.eventsql.internal.consume;

import io.eventsql.StartPosition;
import io.eventsql.internal.sql.ConsumerTable;
import java.sql.Connection;
import java.time.Duration;

/**
 * The position at which a new consumer starts on each shard. {@link StartPosition#LATEST} means one moment for all
 * shards: when the consumer was first registered on any of them, or when this process subscribed. On a shard that is
 * joined later, the consumer therefore also gets what was published there since that moment.
 *
 * <p>Moments are compared by durations, so the clocks of databases and processes may differ. Thread-safe.
 */
final class ConsumerStart {
    private final StartPosition position;
    private final long subscribedAtNanos = System.nanoTime();
    /** When the consumer was first registered, by this process's monotonic clock. */
    private long registeredAtNanos = subscribedAtNanos;

    ConsumerStart(StartPosition position) {
        this.position = position;
    }

    /** Returns whether the position depends on when the consumer was registered on other shards. */
    boolean dependsOnRegistration() {
        return position.equals(StartPosition.LATEST);
    }

    /**
     * Returns the position on a shard.
     *
     * @param late whether an earlier attempt to join the shard has failed
     */
    synchronized StartPosition on(ConsumerTable consumers, Connection connection, boolean late) {
        boolean isNew = !late && registeredAtNanos == subscribedAtNanos;
        if (!dependsOnRegistration() || isNew) {
            return position;
        }
        // The clock of the database is read first, so the result is never after that moment.
        var now = consumers.readClock(connection);
        return StartPosition.at(now.minusNanos(System.nanoTime() - registeredAtNanos));
    }

    /**
     * Records that the consumer was registered on a shard before.
     *
     * @param askedAtNanos when its age was requested, by {@link System#nanoTime}
     * @param age the time since it was registered there, perhaps by another process
     */
    synchronized void registered(long askedAtNanos, Duration age) {
        long at = askedAtNanos - age.toNanos();
        if (at - registeredAtNanos < 0) {
            registeredAtNanos = at;
        }
    }
}
