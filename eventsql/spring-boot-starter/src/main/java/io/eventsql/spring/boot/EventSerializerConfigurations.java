package io.eventsql.spring.boot;

import io.eventsql.spring.CloudEventSerializer;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventUpcaster;
import io.eventsql.spring.JacksonEventSerializer;
import io.eventsql.spring.PlainEventSerializer;
import java.util.List;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.util.ClassUtils;
import tools.jackson.databind.json.JsonMapper;

/** Serializers of payloads, imported one after the other: the first whose conditions match wins. */
final class EventSerializerConfigurations {
    private static final String CLOUD_EVENTS_LIBRARY = "io.cloudevents.core.builder.CloudEventBuilder";

    private EventSerializerConfigurations() {}

    private static EventSerializer withCloudEvents(EventSerializer serializer) {
        return ClassUtils.isPresent(CLOUD_EVENTS_LIBRARY, null) ? new CloudEventSerializer(serializer) : serializer;
    }

    /**
     * JSON with the application's mapper; fails if there are several and none is primary. Otherwise a second mapper,
     * such as that of a library, would change what is stored.
     */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(JsonMapper.class)
    @ConditionalOnBean(JsonMapper.class)
    static class Json {
        @Bean
        @ConditionalOnMissingBean(EventSerializer.class)
        EventSerializer eventSqlSerializer(
                ObjectProvider<JsonMapper> mappers, ObjectProvider<EventUpcaster> upcasters) {
            List<EventUpcaster> ordered = upcasters.orderedStream().toList();
            return withCloudEvents(new JacksonEventSerializer(only(mappers), ordered));
        }

        private static JsonMapper only(ObjectProvider<JsonMapper> mappers) {
            try {
                return mappers.getObject();
            } catch (NoUniqueBeanDefinitionException e) {
                throw new AmbiguousJsonMapperException(e);
            }
        }
    }

    /** Without a mapper: only text and bytes. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(EventSerializer.class)
    static class Plain {
        @Bean
        EventSerializer eventSqlSerializer() {
            return withCloudEvents(new PlainEventSerializer());
        }
    }
}
