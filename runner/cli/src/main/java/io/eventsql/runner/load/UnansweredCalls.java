package io.eventsql.runner.load;

/** Waits for the answers of calls that did not wait for them. */
public final class UnansweredCalls {
    /** Longer than the publish timeout of any target, so that no later answer can be expected. */
    static final long TIMEOUT_NANOS = 60_000_000_000L;
    /** The timeout after Ctrl-C. */
    static final long TIMEOUT_INTERRUPTED_NANOS = 5_000_000_000L;

    private static final long POLL_NANOS = 1_000_000;

    private UnansweredCalls() {}

    /** Waits until all sent events are answered. Reports those unanswered after a timeout as failed. */
    public static void await(LoadClock clock, StopSignal stop, LoadListener listener, long sentEvents) {
        long started = clock.nanos();
        while (listener.answeredEvents() < sentEvents) {
            long now = clock.nanos();
            long timeout = stop.isInterrupted() ? TIMEOUT_INTERRUPTED_NANOS : TIMEOUT_NANOS;
            if (now - started > timeout) {
                int unanswered = Math.toIntExact(sentEvents - listener.answeredEvents());
                listener.failed(started, now, unanswered, new UnansweredException(timeout));
                return;
            }
            clock.parkNanos(POLL_NANOS);
        }
    }
}
