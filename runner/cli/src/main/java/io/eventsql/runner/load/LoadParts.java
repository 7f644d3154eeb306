package io.eventsql.runner.load;

import io.eventsql.runner.driver.PublishTarget;
import io.eventsql.runner.workload.EventSource;

/**
 * What every generator works with.
 *
 * @param source makes the events
 * @param target where they go
 * @param eventsPerCall events of one publish call, at least 1
 * @param clock the time
 * @param stop ends the load early
 */
public record LoadParts(
        EventSource source, PublishTarget target, int eventsPerCall, LoadClock clock, StopSignal stop) {}
