package io.eventsql.runner.consumption;

import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * A wait that reports once per second what it waits for.
 *
 * @param clock the time source
 * @param poll the interval between two checks
 * @param out receives the progress lines
 */
record ReportedWait(LoadClock clock, Duration poll, Consumer<String> out) {
    private static final long REPORT_NANOS = Duration.ofSeconds(1).toNanos();

    /**
     * Waits until nothing is missing.
     *
     * @param timeout the maximum time to wait
     * @param stop aborts the wait
     * @param missing describes what is missing; empty if nothing is
     * @return what was missing at the timeout; empty if nothing was, or after a stop signal
     */
    Optional<String> await(Duration timeout, StopSignal stop, Supplier<Optional<String>> missing) {
        long started = clock.nanos();
        long reported = started;
        while (!stop.isRaised()) {
            Optional<String> open = missing.get();
            long now = clock.nanos();
            if (open.isEmpty() || now - started > timeout.toNanos()) {
                return open;
            }
            if (now - reported >= REPORT_NANOS) {
                out.accept(open.get() + "; waiting for 1s...");
                reported = now;
            }
            clock.parkNanos(poll.toNanos());
        }
        return Optional.empty();
    }
}
