package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.spring.internal.actuate.EventSqlEndpoint;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** The endpoint {@code eventsql}, where it is exposed. */
@AutoConfiguration(after = EventSqlAutoConfiguration.class)
@ConditionalOnClass(ConditionalOnAvailableEndpoint.class)
@ConditionalOnBean(EventSql.class)
@ConditionalOnAvailableEndpoint(EventSqlEndpoint.class)
public final class EventSqlEndpointAutoConfiguration {
    @Bean
    @ConditionalOnMissingBean
    EventSqlEndpoint eventSqlEndpoint(EventSql eventSql) {
        return new EventSqlEndpoint(eventSql);
    }
}
