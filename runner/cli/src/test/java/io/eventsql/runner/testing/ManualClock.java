package io.eventsql.runner.testing;

import io.eventsql.runner.load.LoadClock;
import java.util.concurrent.atomic.AtomicLong;

/** A clock that moves only when somebody parks or says so. Thread-safe. */
public final class ManualClock implements LoadClock {
    /** Where both clocks start: far from zero, so that mixing them up shows. */
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

    /** Runs after each park, when time has moved. */
    public void whenParked(Runnable action) {
        whenParked = action;
    }
}
