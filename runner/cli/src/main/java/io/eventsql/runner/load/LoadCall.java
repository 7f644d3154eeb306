package io.eventsql.runner.load;

import io.eventsql.Event;
import java.util.List;

/**
 * A call of a load.
 *
 * @param stream where it goes
 * @param warmup whether it is outside of what is measured
 * @param firstNumber the number of its first event; the others follow it
 * @param events at least one
 * @param intendedNanos when it is meant to be made, on the monotonic clock
 */
record LoadCall(LoadStream stream, boolean warmup, long firstNumber, List<Event> events, long intendedNanos) {

    void recordAcknowledged() {
        stream.recordAcknowledged(warmup, firstNumber, events.size());
    }

    void recordFailed(Throwable failure) {
        stream.recordFailed(warmup, firstNumber, failure);
    }
}
