package io.eventsql.spring.boot;

import io.eventsql.spring.listener.ListenerSettings;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * What properties say about listeners.
 *
 * @param listener defaults of all listeners
 * @param listeners of single listeners, by their ids; these count more than their annotations
 */
@ConfigurationProperties("eventsql")
public record EventSqlListenerProperties(
        @Nullable ListenerSettings listener, @Nullable Map<String, ListenerSettings> listeners) {}
