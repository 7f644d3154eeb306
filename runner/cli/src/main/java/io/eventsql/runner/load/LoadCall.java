package io.eventsql.runner.load;

import io.eventsql.Event;
import java.util.List;

/**
 * One call of a load.
 *
 * @param stream the target stream
 * @param warmup whether it belongs to the warm-up
 * @param firstNumber the number of its first event; the others are consecutive
 * @param events the events, at least one
 * @param intendedNanos the intended time on the monotonic clock
 */
public record LoadCall(LoadStream stream, boolean warmup, long firstNumber, List<Event> events, long intendedNanos) {

    /** Makes the call and waits for its answer. */
    public void publish(LoadClock clock, LoadListener listener) {
        long called = recordSent(clock, listener);
        try {
            stream.target().publish(events);
            recordAcknowledged(called, clock.nanos(), listener);
        } catch (RuntimeException e) {
            recordFailed(e, clock.nanos(), listener);
        }
    }

    /** Makes the call without waiting for its answer. */
    public void publishAsync(LoadClock clock, LoadListener listener) {
        long called = recordSent(clock, listener);
        try {
            stream.target().publishAsync(events).whenComplete((stored, failure) -> {
                long now = clock.nanos();
                if (failure == null) {
                    recordAcknowledged(called, now, listener);
                } else {
                    recordFailed(failure, now, listener);
                }
            });
        } catch (RuntimeException rejected) {
            recordFailed(rejected, clock.nanos(), listener);
        }
    }

    private long recordSent(LoadClock clock, LoadListener listener) {
        long called = clock.nanos();
        listener.sent(intendedNanos, called, events.size());
        return called;
    }

    private void recordAcknowledged(long calledNanos, long acknowledgedNanos, LoadListener listener) {
        stream.recordAcknowledged(warmup, firstNumber, events.size());
        listener.acknowledged(intendedNanos, calledNanos, acknowledgedNanos, events.size());
    }

    private void recordFailed(Throwable failure, long failedNanos, LoadListener listener) {
        stream.recordFailed(warmup, firstNumber, failure);
        listener.failed(intendedNanos, failedNanos, events.size(), failure);
    }
}
