package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.OpenTransactions;
import io.eventsql.spring.OutgoingEventCustomizer;
import io.eventsql.spring.StreamCreator;
import io.eventsql.spring.cloudevents.CloudEventHeaders;
import io.eventsql.spring.observation.EventSqlObservations;
import java.time.InstantSource;
import java.util.Objects;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;

/** The template that publishes objects, and how they become events. */
@AutoConfiguration(after = {EventSqlAutoConfiguration.class, JacksonAutoConfiguration.class})
@ConditionalOnBean(EventSql.class)
@Import({EventSerializerConfigurations.Json.class, EventSerializerConfigurations.Plain.class})
public final class EventSqlTemplateAutoConfiguration {

    /** Static, and without dependencies: it is made before the transaction managers it watches. */
    @Bean
    @ConditionalOnMissingBean
    static OpenTransactions eventSqlOpenTransactions() {
        return new OpenTransactions();
    }

    @Bean
    @ConditionalOnMissingBean
    EventSqlTemplate eventSqlTemplate(
            EventSql eventSql,
            EventSqlProperties properties,
            EventSerializer serializer,
            ObjectProvider<OutgoingEventCustomizer> customizers,
            StreamCreator streams,
            OpenTransactions transactions,
            ObjectProvider<EventSqlObservations> observations) {
        return new EventSqlTemplate(
                eventSql,
                new EventSqlTemplate.Parts(
                        serializer,
                        customizers.orderedStream().toList(),
                        streams,
                        transactions,
                        properties.template().unjoinableTransaction(),
                        observations.getIfAvailable(EventSqlObservations::none)));
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnProperty("eventsql.cloud-events.source")
    CloudEventHeaders eventSqlCloudEventHeaders(EventSqlProperties properties) {
        EventSqlProperties.CloudEvents attributes = properties.cloudEvents();
        return new CloudEventHeaders(
                Objects.requireNonNull(attributes.source()),
                attributes.typePrefix(),
                attributes.types(),
                InstantSource.system());
    }
}
