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
record LoadCall(LoadStream stream, boolean warmup, long firstNumber, List<Event> events, long intendedNanos) {

    void recordAcknowledged() {
        stream.recordAcknowledged(warmup, firstNumber, events.size());
    }

    void recordFailed(Throwable failure) {
        stream.recordFailed(warmup, firstNumber, failure);
    }
}
