package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventSqlObservations;
import io.eventsql.spring.EventTypes;
import io.eventsql.spring.internal.ShutdownBudget;
import io.eventsql.spring.internal.StreamCreator;
import io.eventsql.spring.internal.listener.ListenerFactory;
import io.eventsql.spring.internal.listener.ListenerPostProcessor;
import io.eventsql.spring.internal.listener.ListenerRegistry;
import io.eventsql.spring.internal.listener.ListenerSettings;
import java.util.Map;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.LazyInitializationExcludeFilter;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBooleanProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;

/** Annotated listeners. */
@AutoConfiguration(after = {EventSqlAutoConfiguration.class, EventSqlTemplateAutoConfiguration.class})
@ConditionalOnBooleanProperty(name = "eventsql.enabled", matchIfMissing = true)
@EnableConfigurationProperties(EventSqlListenerProperties.class)
@Import({SharedConfigurations.Properties.class, SharedConfigurations.Streams.class})
public final class EventSqlListenerAutoConfiguration {
    @Bean
    ListenerRegistry eventSqlListenerRegistry(ShutdownBudget shutdown) {
        return new ListenerRegistry(shutdown);
    }

    /** Also without a database: then it reports that the listeners need one. */
    @Bean
    @ConditionalOnMissingBean
    static ListenerPostProcessor eventSqlListenerPostProcessor() {
        return new ListenerPostProcessor();
    }

    /** Excludes listeners from {@code spring.main.lazy-initialization}, because no other bean requests them. */
    @Bean
    static LazyInitializationExcludeFilter eventSqlListenerLazyInitializationExcludeFilter() {
        return (name, definition, type) -> ListenerPostProcessor.hasListeners(type);
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean(EventSql.class)
    ListenerFactory eventSqlListenerFactory(
            ConfigurableListableBeanFactory beans,
            EventSql eventSql,
            ListenerRegistry registry,
            EventSerializer serializer,
            EventTypes types,
            StreamCreator streams,
            EventSqlListenerProperties properties,
            ObjectProvider<EventSqlObservations> observations) {
        ListenerFactory.Shared shared = new ListenerFactory.Shared(
                beans,
                eventSql,
                registry,
                serializer,
                types,
                streams,
                observations.getIfAvailable(EventSqlObservations::none));
        return new ListenerFactory(
                shared,
                properties.listener() == null ? ListenerSettings.NONE : properties.listener(),
                properties.listeners() == null ? Map.of() : properties.listeners());
    }
}
