package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.spring.CloudEventHeaders;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventSqlObservations;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.EventTypes;
import io.eventsql.spring.OutgoingEventCustomizer;
import io.eventsql.spring.TransactionTracker;
import io.eventsql.spring.internal.PropertyNames;
import io.eventsql.spring.internal.StreamCreator;
import java.time.InstantSource;
import java.util.Objects;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/** The template that publishes objects, and their serialization. */
@AutoConfiguration(after = {EventSqlAutoConfiguration.class, JacksonAutoConfiguration.class})
@ConditionalOnBean(EventSql.class)
@Import({
    SharedConfigurations.Properties.class,
    SharedConfigurations.Streams.class,
    EventSerializerConfigurations.Json.class,
    EventSerializerConfigurations.Plain.class
})
public final class EventSqlTemplateAutoConfiguration {

    /** Static, and without dependencies: it is created before the transaction managers it tracks. */
    @Bean
    @ConditionalOnMissingBean
    static TransactionTracker eventSqlTransactionTracker() {
        return new TransactionTracker();
    }

    @Bean
    @ConditionalOnMissingBean
    EventSqlTemplate eventSqlTemplate(
            EventSql eventSql,
            EventSqlProperties properties,
            EventSerializer serializer,
            EventTypes types,
            ObjectProvider<OutgoingEventCustomizer> customizers,
            StreamCreator streams,
            ObjectProvider<EventSqlObservations> observations) {
        return EventSqlTemplate.builder(eventSql)
                .serializer(serializer)
                .customizers(customizers.orderedStream().toList())
                .eventTypes(types)
                .unknownStreamHandler(streams::createIfMissing)
                .exceptionTranslator(PropertyNames::inException)
                .unjoinableTransaction(properties.template().unjoinableTransaction())
                .observations(observations.getIfAvailable(EventSqlObservations::none))
                .build();
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnProperty("eventsql.cloud-events.source")
    CloudEventHeaders eventSqlCloudEventHeaders(EventSqlProperties properties, EventTypes types) {
        return new CloudEventHeaders(
                Objects.requireNonNull(properties.cloudEvents().source()), types, InstantSource.system());
    }

    @Bean
    @ConditionalOnMissingBean
    EventTypes eventSqlEventTypes(EventSqlProperties properties) {
        EventSqlProperties.CloudEvents attributes = properties.cloudEvents();
        return EventTypes.ofCloudEvents(attributes.typePrefix(), attributes.types());
    }

    /** Static: it is created before the {@link EventTypes} it completes. */
    @Bean
    static EventTypesRegistrar eventSqlEventTypesRegistrar(
            BeanFactory beans, Environment environment, ObjectProvider<EventSqlProperties> properties) {
        return new EventTypesRegistrar(beans, environment, properties);
    }
}
