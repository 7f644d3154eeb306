package io.eventsql.spring.boot;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Settings of the health indicator {@code eventsql}.
 *
 * @param timeout Longest wait for the responses of all shards and consumers.
 * @param stoppedPartitionsStatus Status while a partition of a consumer of this process is stopped or its circuit breaker
 *     is open; UP by default, because a restart does not help. A more severe status takes precedence.
 */
@ConfigurationProperties("eventsql.health")
record EventSqlHealthProperties(
        @DefaultValue("2s") Duration timeout,
        @DefaultValue("UP") String stoppedPartitionsStatus) {}
