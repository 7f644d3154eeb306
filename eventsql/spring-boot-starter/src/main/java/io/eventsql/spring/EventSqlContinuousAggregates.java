package io.eventsql.spring;

import io.eventsql.ContinuousAggregate;
import java.util.NoSuchElementException;

/**
 * The continuous aggregates that beans of type {@link io.eventsql.ContinuousAggregateSpec} declare. They start when all beans exist,
 * after the listeners, and stop before any is destroyed; while one runs, the process stays alive. Thread-safe.
 */
public interface EventSqlContinuousAggregates {
    /** The phase of {@link org.springframework.context.SmartLifecycle}: started after the listeners and stopped before them. */
    int PHASE = EventSqlListenerRegistry.PHASE + 1;

    /**
     * Returns this application's member of an aggregate.
     *
     * @param name that of its specification
     * @throws NoSuchElementException if none of this name is running
     */
    ContinuousAggregate aggregate(String name);
}
