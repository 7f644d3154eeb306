package io.eventsql.runner.load;

import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.driver.PublishTarget;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A target stream of a load. Numbers its warm-up and measured events separately from 0, without gaps across phases, and
 * records which were acknowledged. Thread-safe.
 */
public class LoadStream {

    /** The numbers of either the warm-up or the measured events. */
    private static final class Numbers {
        final AtomicLong next = new AtomicLong();
        private final NumberSet acknowledged = new NumberSet();

        synchronized void acknowledge(long first, int events) {
            for (long number = first; number < first + events; number++) {
                acknowledged.add(number);
            }
        }

        synchronized long acknowledgedEvents() {
            return acknowledged.size();
        }

        synchronized NumberSet acknowledged() {
            return acknowledged.copy();
        }
    }

    private final PublishTarget target;
    private final Numbers warmup = new Numbers();
    private final Numbers measured = new Numbers();

    /** @param target publishes to the stream */
    public LoadStream(PublishTarget target) {
        this.target = target;
    }

    PublishTarget target() {
        return target;
    }

    /** Claims the event numbers of a call. Returns the first one. */
    long claim(boolean ofWarmup, int events) {
        return numbers(ofWarmup).next.getAndAdd(events);
    }

    void recordAcknowledged(boolean ofWarmup, long firstNumber, int events) {
        numbers(ofWarmup).acknowledge(firstNumber, events);
    }

    /** Returns the number of the next event. */
    public long nextNumber(boolean ofWarmup) {
        return numbers(ofWarmup).next.get();
    }

    /** Returns the number of acknowledged events. */
    public long acknowledgedEvents(boolean ofWarmup) {
        return numbers(ofWarmup).acknowledgedEvents();
    }

    /** Returns a copy of the set of acknowledged events. */
    public NumberSet acknowledgedNumbers(boolean ofWarmup) {
        return numbers(ofWarmup).acknowledged();
    }

    private Numbers numbers(boolean ofWarmup) {
        return ofWarmup ? warmup : measured;
    }
}
