package io.eventsql.spring.internal;

import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * The time that listeners and {@link io.eventsql.EventSql} may take together to close, {@link
 * io.eventsql.Settings#closeTimeout()}. Phases between the two, such as a web server's, do not count. Thread-safe.
 */
public final class ShutdownBudget {
    private final long totalNanos;
    private final LongSupplier nanoTime;
    private boolean listenersStopping;
    private long stoppingSince;
    private long usedNanos;

    public ShutdownBudget(Duration closeTimeout) {
        this(closeTimeout, System::nanoTime);
    }

    /** @param nanoTime {@link System#nanoTime()}, except in tests */
    ShutdownBudget(Duration closeTimeout, LongSupplier nanoTime) {
        this.totalNanos = closeTimeout.toNanos();
        this.nanoTime = nanoTime;
    }

    /** Starts anew: the listeners run again. */
    public synchronized void reset() {
        listenersStopping = false;
        usedNanos = 0;
    }

    /**
     * Notes that the listeners begin to stop, and returns how long they may take: all that is left, because closing a
     * subscription ends its handlers early enough to leave time for what follows them.
     */
    public synchronized Duration beginStop() {
        Duration timeout = remaining();
        if (!listenersStopping) {
            listenersStopping = true;
            stoppingSince = nanoTime.getAsLong();
        }
        return timeout;
    }

    /** Notes that all listeners have stopped. */
    public synchronized void endStop() {
        usedNanos = used();
        listenersStopping = false;
    }

    /** Returns the time that is left. */
    public synchronized Duration remaining() {
        return Duration.ofNanos(Math.max(0, totalNanos - used()));
    }

    private long used() {
        return usedNanos + (listenersStopping ? nanoTime.getAsLong() - stoppingSince : 0);
    }
}
