package io.eventsql.spring.listener;

import io.eventsql.StoredEvent;
import java.lang.reflect.Type;
import org.jspecify.annotations.Nullable;

/** Makes of an event's value what a listener method takes. */
@FunctionalInterface
public interface PayloadReader {
    /**
     * The payload of a type.
     *
     * @throws Exception if it cannot be made: the event fails for good
     */
    @Nullable
    Object read(StoredEvent event, Type type) throws Exception;
}
