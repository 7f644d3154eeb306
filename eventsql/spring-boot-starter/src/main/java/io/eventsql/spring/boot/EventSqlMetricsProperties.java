package io.eventsql.spring.boot;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Meters.
 *
 * @param outboxInterval how often what waits in an outbox is read at most, whatever scrapes there are
 */
@ConfigurationProperties("eventsql.metrics")
public record EventSqlMetricsProperties(@DefaultValue("10s") Duration outboxInterval) {}
