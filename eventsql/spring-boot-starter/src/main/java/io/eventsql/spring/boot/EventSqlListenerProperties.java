package io.eventsql.spring.boot;

import io.eventsql.spring.internal.listener.ListenerSettings;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.NestedConfigurationProperty;

/**
 * Settings of listeners.
 *
 * @param listener Defaults of all listeners.
 * @param listeners Settings of single listeners, by their ids; they override the annotations.
 */
@ConfigurationProperties("eventsql")
record EventSqlListenerProperties(
        @NestedConfigurationProperty @Nullable ListenerSettings listener,
        @Nullable Map<String, ListenerSettings> listeners) {}
