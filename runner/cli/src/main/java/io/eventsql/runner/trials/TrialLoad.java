package io.eventsql.runner.trials;

import io.eventsql.Event;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.load.LoadCall;
import io.eventsql.runner.load.LoadClock;
import io.eventsql.runner.load.LoadStream;
import io.eventsql.runner.load.StopSignal;
import io.eventsql.runner.load.UnansweredCalls;
import java.util.Iterator;
import java.util.List;

/**
 * Makes the calls of a trial sequentially from one thread and waits for their answers.
 *
 * @param clock the time source
 * @param stop aborts a trial
 */
record TrialLoad(LoadClock clock, StopSignal stop) {

    /**
     * Runs a trial.
     *
     * @param calls the events of each call, created on demand
     * @param waiting whether each call waits for its answer; otherwise only the end of the trial waits
     */
    TrialOutcome run(PublishTarget target, Iterator<List<Event>> calls, boolean waiting) {
        TrialStats stats = new TrialStats();
        LoadStream stream = new LoadStream(target);
        long start = clock.nanos();
        long sent = 0;
        while (calls.hasNext() && !stop.isRaised()) {
            List<Event> events = calls.next();
            LoadCall call = new LoadCall(stream, false, sent, events, clock.nanos());
            if (waiting) {
                call.publish(clock, stats);
            } else {
                call.publishAsync(clock, stats);
            }
            sent += events.size();
        }
        boolean complete = !calls.hasNext();
        UnansweredCalls.await(clock, stop, stats, sent);
        TrialStats.Totals totals = stats.totals();
        return new TrialOutcome(Math.max(0, totals.lastNanos() - start), totals, complete);
    }
}
