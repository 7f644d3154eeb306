package io.eventsql.spring.test;

import io.eventsql.EventSql;
import io.eventsql.spring.EventSerializer;
import io.eventsql.spring.EventTypes;
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
    /** A callback of the {@link EventSql} that the starter configures. */
    @Bean
    HandlerFailures eventSqlHandlerFailures() {
        return new HandlerFailures();
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnBean({EventSql.class, EventSerializer.class, EventTypes.class})
    EventSqlTestSupport eventSqlTestSupport(
            EventSql eventSql, EventSerializer serializer, EventTypes types, HandlerFailures failures) {
        return new EventSqlTestSupport(eventSql, serializer, types, failures);
    }
}
