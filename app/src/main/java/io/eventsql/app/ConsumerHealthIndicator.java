package io.eventsql.app;

import io.eventsql.Subscription;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;

/** Up while this app takes part in consuming, as a member of its consumer. Thread-safe. */
final class ConsumerHealthIndicator implements HealthIndicator {
    private final Subscription subscription;

    ConsumerHealthIndicator(Subscription subscription) {
        this.subscription = subscription;
    }

    @Override
    public Health health() {
        Health.Builder health = subscription.isRunning() ? Health.up() : Health.down();
        return health.withDetail("consumer", subscription.spec().name()).build();
    }
}
