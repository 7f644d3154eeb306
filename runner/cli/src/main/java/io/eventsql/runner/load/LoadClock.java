package io.eventsql.runner.load;

import io.eventsql.benchmark.event.EpochMicros;
import java.util.concurrent.locks.LockSupport;

/** Time as the load generator sees and spends it. */
public interface LoadClock {

    /** The machine's clocks. Thread-safe. */
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

    /** Monotonic nanoseconds from an arbitrary origin; only differences mean something. */
    long nanos();

    /** The wall clock, microseconds since 1970 in UTC. */
    long epochMicros();

    /** Waits about so long; may return early. */
    void parkNanos(long nanos);
}
