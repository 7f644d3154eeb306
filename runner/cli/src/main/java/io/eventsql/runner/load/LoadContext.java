package io.eventsql.runner.load;

import io.eventsql.Event;
import io.eventsql.runner.driver.PublishTarget;
import java.util.List;

/**
 * The context shared by load generators.
 *
 * @param source creates the events
 * @param streams the target streams, called in rotation
 * @param eventsPerCall the events per publish call, at least 1
 * @param clock the time source
 * @param stop aborts the load
 */
public record LoadContext(
        EventSource source, List<LoadStream> streams, int eventsPerCall, LoadClock clock, StopSignal stop) {

    public LoadContext {
        streams = List.copyOf(streams);
    }

    /** Creates the context of a single stream whose event numbers start at 0. */
    public LoadContext(EventSource source, PublishTarget target, int eventsPerCall, LoadClock clock, StopSignal stop) {
        this(source, List.of(new LoadStream(target)), eventsPerCall, clock, stop);
    }

    /** Returns the stream of the call with the given number. */
    LoadStream streamOf(long call) {
        return streams.get((int) (call % streams.size()));
    }

    /** Creates the next call to a stream. */
    LoadCall nextCall(LoadStream stream, KeyShare keys, LoadPhase phase, int events, long intendedNanos) {
        long first = stream.claim(phase.warmup(), events);
        List<Event> made = source.createEvents(
                keys, phase.warmup(), first, events, phase.anchor().epochMicrosAt(intendedNanos));
        return new LoadCall(stream, phase.warmup(), first, made, intendedNanos);
    }
}
