package io.eventsql.runner.load;

import io.eventsql.PartialPublishException;
import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * One stream that a load goes to. Numbers its events by itself, those of warm-ups and measured ones apart, both from 0
 * on, without gaps and over all phases; and remembers which were acknowledged. Thread-safe.
 */
public final class LoadStream {

    /** The numbers of one of both sorts. */
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

    /** Takes the numbers of a call; returns the first. */
    long claim(boolean ofWarmup, int events) {
        return numbers(ofWarmup).next.getAndAdd(events);
    }

    void recordAcknowledged(boolean ofWarmup, long firstNumber, int events) {
        numbers(ofWarmup).acknowledge(firstNumber, events);
    }

    /** Takes note of those events of a failed call that are stored all the same. */
    void recordFailed(boolean ofWarmup, long firstNumber, Throwable failure) {
        Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
        if (cause instanceof PartialPublishException partial) {
            List<PartialPublishException.Outcome> outcomes = partial.outcomes();
            for (int i = 0; i < outcomes.size(); i++) {
                if (outcomes.get(i).isStored()) {
                    numbers(ofWarmup).acknowledge(firstNumber + i, 1);
                }
            }
        }
    }

    /** How many numbers were given out: the next event has this one. */
    public long nextNumber(boolean ofWarmup) {
        return numbers(ofWarmup).next.get();
    }

    /** How many events were acknowledged. */
    public long acknowledgedEvents(boolean ofWarmup) {
        return numbers(ofWarmup).acknowledgedEvents();
    }

    /** Which events were acknowledged, in a set of its own. */
    public NumberSet acknowledgedNumbers(boolean ofWarmup) {
        return numbers(ofWarmup).acknowledged();
    }

    private Numbers numbers(boolean ofWarmup) {
        return ofWarmup ? warmup : measured;
    }
}
