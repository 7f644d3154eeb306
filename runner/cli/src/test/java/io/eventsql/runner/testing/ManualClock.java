package io.eventsql.runner.testing;

import io.eventsql.runner.load.LoadClock;
import java.util.concurrent.atomic.AtomicLong;

/** A clock that advances only by {@link #parkNanos} and {@link #advance}. Thread-safe. */
public final class ManualClock implements LoadClock {
    /** The start of both clocks, far from zero, so that mixing them up is detected. */
    public static final long START_NANOS = 7_000_000_000_123L;

    public static final long START_EPOCH_MICROS = 1_800_000_000_000_000L;

    private final AtomicLong nanos = new AtomicLong(START_NANOS);
    private volatile Runnable whenParked = () -> {};

    @Override
    public long nanos() {
        return nanos.get();
    }

    @Override
    public long epochMicros() {
        return START_EPOCH_MICROS + (nanos.get() - START_NANOS) / 1_000;
    }

    @Override
    public void parkNanos(long forNanos) {
        advance(forNanos);
        whenParked.run();
    }

    public void advance(long byNanos) {
        nanos.addAndGet(byNanos);
    }

    /** Sets an action to run after each park. */
    public void whenParked(Runnable action) {
        whenParked = action;
    }
}
