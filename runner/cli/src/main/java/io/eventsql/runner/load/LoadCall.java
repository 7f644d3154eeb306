package io.eventsql.runner.load;

import io.eventsql.Event;
import io.eventsql.EventSqlException;
import io.eventsql.PartialPublishException;
import java.util.List;
import java.util.concurrent.CompletionException;

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
            recordAcknowledged(called, clock.nanos(), firstNumber, events.size(), listener);
        } catch (RuntimeException e) {
            recordFailed(e, called, clock.nanos(), listener);
        }
    }

    /** Makes the call without waiting for its answer. */
    public void publishAsync(LoadClock clock, LoadListener listener) {
        long called = recordSent(clock, listener);
        try {
            stream.target().publishAsync(events).whenComplete((stored, failure) -> {
                long now = clock.nanos();
                if (failure == null) {
                    recordAcknowledged(called, now, firstNumber, events.size(), listener);
                } else {
                    recordFailed(failure, called, now, listener);
                }
            });
        } catch (RuntimeException rejected) {
            recordFailed(rejected, called, clock.nanos(), listener);
        }
    }

    private long recordSent(LoadClock clock, LoadListener listener) {
        long called = clock.nanos();
        listener.sent(intendedNanos, called, events.size());
        return called;
    }

    private void recordAcknowledged(
            long calledNanos, long acknowledgedNanos, long first, int count, LoadListener listener) {
        stream.recordAcknowledged(warmup, first, count);
        listener.acknowledged(intendedNanos, calledNanos, acknowledgedNanos, count);
    }

    /** Records each event of a partly failed call by its own outcome. */
    private void recordFailed(Throwable failure, long calledNanos, long failedNanos, LoadListener listener) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        if (!(cause instanceof PartialPublishException partial)) {
            listener.failed(intendedNanos, failedNanos, events.size(), cause);
            return;
        }
        long number = firstNumber;
        for (PartialPublishException.Outcome outcome : partial.outcomes()) {
            EventSqlException failed = outcome.failure();
            if (failed == null) {
                recordAcknowledged(calledNanos, failedNanos, number, 1, listener);
            } else {
                listener.failed(intendedNanos, failedNanos, 1, failed);
            }
            number++;
        }
    }
}
