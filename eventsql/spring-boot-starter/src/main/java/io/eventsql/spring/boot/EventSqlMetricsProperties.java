package io.eventsql.spring.boot;

import io.eventsql.InvalidInputException;
import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * Settings of the meters.
 *
 * @param outboxInterval Shortest time between two reads of an outbox's backlog, however often meters are scraped, 50 ms
 *     to 5 min.
 * @param consumerInterval Time between two reads of a shard's consumers by the process that reports them, 50 ms to 20 min.
 * @param maxConsumers Maximum number of consumers of a shard whose state is read for meters, 0 to 1000; 0 switches them off.
 */
@ConfigurationProperties("eventsql.metrics")
record EventSqlMetricsProperties(
        @DefaultValue("10s") Duration outboxInterval,
        @DefaultValue("10s") Duration consumerInterval,
        @DefaultValue("100") int maxConsumers) {
    private static final int CONSUMERS_MAX = 1_000;
    private static final Duration INTERVAL_MIN = Duration.ofMillis(50);
    /** A reading is shown for 10 min. A scrape may get one as old as the interval and the time between two scrapes. */
    private static final Duration OUTBOX_INTERVAL_MAX = Duration.ofMinutes(5);

    private static final Duration CONSUMER_INTERVAL_MAX = Duration.ofMinutes(20);

    /** @throws InvalidInputException if a value is out of range */
    EventSqlMetricsProperties {
        if (maxConsumers < 0 || maxConsumers > CONSUMERS_MAX) {
            throw new InvalidInputException(
                    "eventsql.metrics.max-consumers",
                    "must be between 0 and " + CONSUMERS_MAX + ", but is " + maxConsumers);
        }
        requireInterval("eventsql.metrics.outbox-interval", outboxInterval, OUTBOX_INTERVAL_MAX);
        requireInterval("eventsql.metrics.consumer-interval", consumerInterval, CONSUMER_INTERVAL_MAX);
    }

    private static void requireInterval(String property, Duration value, Duration max) {
        if (value.compareTo(INTERVAL_MIN) < 0 || value.compareTo(max) > 0) {
            throw new InvalidInputException(
                    property,
                    "must be between " + INTERVAL_MIN.toMillis() + " ms and " + max.toMinutes() + " min, but is "
                            + value.toMillis() + " ms");
        }
    }
}
