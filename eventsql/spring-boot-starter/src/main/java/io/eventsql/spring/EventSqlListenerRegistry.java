package io.eventsql.spring;

import java.util.List;
import java.util.NoSuchElementException;

/**
 * The application's listeners, to inspect, stop and start them. Listeners start when all beans exist and stop before any
 * is destroyed; while one runs, the process stays alive, even if it serves nothing else. Thread-safe.
 */
public interface EventSqlListenerRegistry {
    /** The phase of {@link org.springframework.context.SmartLifecycle}: started after a web server and stopped before it. */
    int PHASE = Integer.MAX_VALUE - 100;

    /** Returns all listeners, by id. */
    List<EventSqlListenerContainer> containers();

    /**
     * Returns a listener.
     *
     * @throws NoSuchElementException if there is none with this id
     */
    EventSqlListenerContainer container(String id);
}
