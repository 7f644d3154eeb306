package io.eventsql.spring.boot;

import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.JacksonEventSerializer;
import io.eventsql.spring.PlainEventSerializer;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import tools.jackson.databind.json.JsonMapper;

/** How payloads become events, imported one after the other: the first that is possible wins. */
final class EventSerializerConfigurations {
    private EventSerializerConfigurations() {}

    /** JSON with the application's mapper. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(JsonMapper.class)
    @ConditionalOnSingleCandidate(JsonMapper.class)
    static class Json {
        @Bean
        @ConditionalOnMissingBean(EventSerializer.class)
        JacksonEventSerializer eventSqlSerializer(JsonMapper mapper) {
            return new JacksonEventSerializer(mapper);
        }
    }

    /** Without a mapper only text and bytes. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnMissingBean(EventSerializer.class)
    static class Plain {
        @Bean
        PlainEventSerializer eventSqlSerializer() {
            return new PlainEventSerializer();
        }
    }
}
