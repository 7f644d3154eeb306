package io.eventsql.spring.boot;

import io.eventsql.EventSql;
import io.eventsql.spring.internal.actuate.DelayedPartitions;
import io.eventsql.spring.internal.actuate.EventSqlHealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.annotation.Bean;

/** The health indicator {@code eventsql}; {@code management.health.eventsql.enabled=false} disables it. */
@AutoConfiguration(after = EventSqlAutoConfiguration.class)
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnBean(EventSql.class)
@ConditionalOnEnabledHealthIndicator("eventsql")
@EnableConfigurationProperties(EventSqlHealthProperties.class)
public final class EventSqlHealthAutoConfiguration {
    /** Its bean name is its name in the health response. */
    @Bean
    @ConditionalOnMissingBean(name = {"eventsqlHealthIndicator", "eventsqlHealthContributor"})
    EventSqlHealthIndicator eventsqlHealthIndicator(
            EventSql eventSql, EventSqlHealthProperties properties, DelayedPartitions delayedPartitions) {
        return new EventSqlHealthIndicator(
                eventSql, properties.timeout(), new Status(properties.stoppedPartitionsStatus()), delayedPartitions);
    }

    /** {@link EventSqlAutoConfiguration} registers it with the library. */
    @Bean
    @ConditionalOnMissingBean
    DelayedPartitions eventSqlDelayedPartitions() {
        return new DelayedPartitions();
    }
}
