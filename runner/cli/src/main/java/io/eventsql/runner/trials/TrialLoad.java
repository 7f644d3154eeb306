package io.eventsql.runner.trials;

import io.eventsql.Event;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.StopSignal;
import java.util.Iterator;
import java.util.List;

/** Makes the calls of a trial sequentially from one thread and waits for their answers. */
final class TrialLoad {
    /** Longer than the publish timeout of any target, so that no later answer can be expected. */
    static final long ANSWER_TIMEOUT_NANOS = 60_000_000_000L;

    /** The timeout after Ctrl-C. */
    static final long ANSWER_TIMEOUT_INTERRUPTED_NANOS = 5_000_000_000L;

    private static final long POLL_NANOS = 1_000_000;

    private final LoadClock clock;
    private final StopSignal stop;

    TrialLoad(LoadClock clock, StopSignal stop) {
        this.clock = clock;
        this.stop = stop;
    }

    /**
     * Runs a trial.
     *
     * @param calls the events of each call, created on demand
     * @param waiting whether each call waits for its answer; otherwise only the end of the trial waits
     */
    TrialOutcome run(PublishTarget target, Iterator<List<Event>> calls, boolean waiting) {
        TrialStats stats = new TrialStats();
        long start = clock.nanos();
        long sent = 0;
        while (calls.hasNext() && !stop.isRaised()) {
            List<Event> events = calls.next();
            if (waiting) {
                call(target, events, stats);
            } else {
                callAsync(target, events, stats);
            }
            sent += events.size();
        }
        boolean complete = !calls.hasNext();
        awaitAnswers(stats, sent);
        TrialStats.Totals totals = stats.totals();
        return new TrialOutcome(Math.max(0, totals.lastNanos() - start), totals, complete);
    }

    private void call(PublishTarget target, List<Event> events, TrialStats stats) {
        long called = clock.nanos();
        try {
            target.publish(events);
            stats.recordStored(called, clock.nanos(), events.size());
        } catch (RuntimeException e) {
            stats.recordFailed(clock.nanos(), events.size(), e);
        }
    }

    private void callAsync(PublishTarget target, List<Event> events, TrialStats stats) {
        long called = clock.nanos();
        try {
            target.publishAsync(events).whenComplete((stored, failure) -> {
                if (failure == null) {
                    stats.recordStored(called, clock.nanos(), events.size());
                } else {
                    stats.recordFailed(clock.nanos(), events.size(), failure);
                }
            });
        } catch (RuntimeException rejected) {
            stats.recordFailed(clock.nanos(), events.size(), rejected);
        }
    }

    private void awaitAnswers(TrialStats stats, long sent) {
        long since = clock.nanos();
        while (stats.answeredEvents() < sent) {
            long timeout = stop.isInterrupted() ? ANSWER_TIMEOUT_INTERRUPTED_NANOS : ANSWER_TIMEOUT_NANOS;
            if (clock.nanos() - since > timeout) {
                stats.recordFailed(
                        clock.nanos(),
                        sent - stats.answeredEvents(),
                        new IllegalStateException("no answer within " + timeout / 1_000_000_000 + " s"));
                return;
            }
            clock.parkNanos(POLL_NANOS);
        }
    }
}
