package io.eventsql.runner.load;

import io.eventsql.benchmark.event.EpochMicros;
import java.util.concurrent.locks.LockSupport;

/** The time source of load generators. */
public interface LoadClock {

    /** The system clocks. Thread-safe. */
    LoadClock SYSTEM = new LoadClock() {
        @Override
        public long nanos() {
            return System.nanoTime();
        }

        @Override
        public long epochMicros() {
            return EpochMicros.now();
        }

        @Override
        public void parkNanos(long nanos) {
            LockSupport.parkNanos(nanos);
        }
    };

    /** Returns monotonic nanoseconds from an arbitrary origin. Only differences are meaningful. */
    long nanos();

    /** Returns the wall-clock time in epoch microseconds. */
    long epochMicros();

    /** Waits for about the given time. May return early. */
    void parkNanos(long nanos);
}
