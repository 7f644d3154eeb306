package io.eventsql.runner.driver;

import io.eventsql.Event;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Callbacks for the deliveries to a consumer. Implementations must be thread-safe and fast. */
public interface DeliveryListener {

    /**
     * Called with a page in the order of its delivery. Events of one key are never delivered concurrently. The events
     * are the client's own objects, so that a driver need not copy them.
     *
     * @param key returns the key of an event
     * @param value returns the value of an event
     */
    <T> void delivered(Iterable<T> page, Function<? super T, @Nullable String> key, Function<? super T, byte[]> value);

    /** Called with a page of events, see {@link #delivered(Iterable, Function, Function)}. */
    default void delivered(List<Event> page) {
        delivered(page, Event::key, Event::value);
    }

    /** Called when consuming fails temporarily or permanently. The run then fails and reports it. */
    void failed(Throwable failure);
}
