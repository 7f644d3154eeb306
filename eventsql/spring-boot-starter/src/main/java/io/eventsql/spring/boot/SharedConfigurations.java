package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import io.eventsql.spring.internal.ShutdownBudget;
import io.eventsql.spring.internal.StreamCreator;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** What several auto-configurations need. Each imports it, because an application can exclude any of the others. */
final class SharedConfigurations {
    private SharedConfigurations() {}

    /** The properties and the beans that depend only on them. */
    @Configuration(proxyBeanMethods = false)
    @EnableConfigurationProperties(EventSqlProperties.class)
    static class Properties {
        @Bean
        @ConditionalOnMissingBean
        ShutdownBudget eventSqlShutdownBudget(EventSqlProperties properties) {
            return new ShutdownBudget(properties.closeTimeout());
        }
    }

    /**
     * The streams of {@link EventSql}. {@link EventSqlAutoConfiguration} does not import it, because the conditions of
     * an imported class are evaluated before the beans of the importing one are defined.
     */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnBean(EventSql.class)
    static class Streams {
        @Bean
        @ConditionalOnMissingBean
        StreamCreator eventSqlStreamCreator(
                EventSql eventSql, EventSqlProperties properties, ObjectProvider<StreamSpec> beans) {
            return DeclaredStreams.creator(eventSql, properties, beans);
        }
    }
}
