package io.eventsql.spring.test;

import io.eventsql.EventSql;
import io.eventsql.spring.EventSerializer;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Configures {@link EventSqlTestSupport}. */
@AutoConfiguration(
        afterName = {
            "io.eventsql.spring.boot.EventSqlAutoConfiguration",
            "io.eventsql.spring.boot.EventSqlTemplateAutoConfiguration"
        })
public final class EventSqlTestAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean({EventSql.class, EventSerializer.class})
    EventSqlTestSupport eventSqlTestSupport(EventSql eventSql, EventSerializer serializer) {
        return new EventSqlTestSupport(eventSql, serializer);
    }
}
