package io.eventsql.spring.boot;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The health indicator {@code eventsql}.
 *
 * @param timeout how long shards and consumers may take to answer, all at the same time
 * @param stoppedPartitionsStatus the status while a partition of a consumer of this process is stopped by a failure: UP by
 *     default, because a restart does not help it. A higher one is never made lower by this
 */
@ConfigurationProperties("eventsql.health")
public record EventSqlHealthProperties(
        @DefaultValue("2s") Duration timeout,
        @DefaultValue("UP") String stoppedPartitionsStatus) {}
