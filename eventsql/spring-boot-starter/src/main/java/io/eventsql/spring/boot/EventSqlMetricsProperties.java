package io.eventsql.spring.boot;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Settings of the meters.
 *
 * @param outboxInterval Shortest time between two reads of an outbox's backlog, however often meters are scraped.
 */
@ConfigurationProperties("eventsql.metrics")
record EventSqlMetricsProperties(@DefaultValue("10s") Duration outboxInterval) {}
