package io.eventsql.runner.load;

import io.eventsql.Event;
import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.workload.EventSource;
import io.eventsql.runner.workload.KeyShare;
import java.util.List;

/**
 * What every generator works with.
 *
 * @param source makes the events
 * @param streams where they go, one call to each in turn
 * @param eventsPerCall events of one publish call, at least 1
 * @param clock the time
 * @param stop ends the load early
 */
public record LoadContext(
        EventSource source, List<LoadStream> streams, int eventsPerCall, LoadClock clock, StopSignal stop) {

    public LoadContext {
        streams = List.copyOf(streams);
    }

    /** For a single stream whose numbers begin at 0. */
    public LoadContext(EventSource source, PublishTarget target, int eventsPerCall, LoadClock clock, StopSignal stop) {
        this(source, List.of(new LoadStream(target)), eventsPerCall, clock, stop);
    }

    /** The stream of a call, by the call's number. */
    LoadStream streamOf(long call) {
        return streams.get((int) (call % streams.size()));
    }

    /** Makes the next call to a stream. */
    LoadCall nextCall(LoadStream stream, KeyShare keys, LoadPhase phase, int events, long intendedNanos) {
        long first = stream.claim(phase.warmup(), events);
        List<Event> made = source.createEvents(
                keys, phase.warmup(), first, events, phase.anchor().epochMicrosAt(intendedNanos));
        return new LoadCall(stream, phase.warmup(), first, made, intendedNanos);
    }
}
