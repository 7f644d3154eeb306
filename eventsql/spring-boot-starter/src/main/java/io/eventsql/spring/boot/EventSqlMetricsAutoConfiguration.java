package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.spring.internal.observation.EventSqlGauges;
import io.eventsql.spring.internal.observation.EventSqlMeters;
import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;

/** Meters, if the application has a registry; {@code management.metrics.enable.eventsql=false} disables them. */
@AutoConfiguration(
        after = EventSqlAutoConfiguration.class,
        afterName = {
            "org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration"
        })
@ConditionalOnClass(MeterRegistry.class)
@ConditionalOnBean({MeterRegistry.class, EventSql.class})
@EnableConfigurationProperties(EventSqlMetricsProperties.class)
public final class EventSqlMetricsAutoConfiguration {
    /** {@link EventSqlAutoConfiguration} registers it with the library. */
    @Bean
    @ConditionalOnMissingBean
    EventSqlMeters eventSqlMeters(MeterRegistry registry) {
        return new EventSqlMeters(registry);
    }

    @Bean
    @ConditionalOnMissingBean
    EventSqlGauges eventSqlGauges(EventSql eventSql, EventSqlMetricsProperties properties) {
        return new EventSqlGauges(
                eventSql, properties.outboxInterval(), properties.consumerInterval(), properties.maxConsumers());
    }
}
