package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ContinuousAggregate;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.spring.EventSqlContinuousAggregates;
import io.eventsql.spring.internal.actuate.EventSqlEndpoint;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.NoSuchElementException;
import javax.sql.DataSource;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ConfigurableApplicationContext;

/** Continuous aggregates that are beans run with the application, and are shown like every consumer. */
class DeclaredAggregatesIT extends AutoConfigurationFixture {
    private static final ContinuousAggregateSpec SPEC = ContinuousAggregateSpec.of("order_minutes", "orders");

    private ApplicationContextRunner withAggregate(DataSource database) {
        return application
                .withConfiguration(AutoConfigurations.of(
                        EventSqlAggregateAutoConfiguration.class,
                        EventSqlListenerAutoConfiguration.class,
                        EventSqlHealthAutoConfiguration.class,
                        EventSqlEndpointAutoConfiguration.class))
                .withPropertyValues("management.endpoints.web.exposure.include=eventsql")
                .withBean(DataSource.class, () -> database)
                .withBean(StreamSpec.class, () -> StreamSpec.of("orders").withPartitions(1))
                .withBean("orderMinutes", ContinuousAggregateSpec.class, () -> SPEC);
    }

    private static void publish(ApplicationContext context) {
        context.getBean(EventSql.class).publisher().publish("orders", Event.ofText("key", "value"));
    }

    private static void awaitCount(ApplicationContext context, long events) {
        ContinuousAggregate aggregate = aggregate(context);
        await().atMost(Duration.ofSeconds(60)).until(() -> count(aggregate) == events);
    }

    private static ContinuousAggregate aggregate(ApplicationContext context) {
        return context.getBean(EventSqlContinuousAggregates.class).aggregate(SPEC.name());
    }

    private static long count(ContinuousAggregate aggregate) {
        Instant now = Instant.now();
        return aggregate.windows(now.minus(Duration.ofHours(1)), now.plus(Duration.ofHours(1)), 1_000).stream()
                .mapToLong(ContinuousAggregate.Window::events)
                .sum();
    }

    @Test
    void aggregate_runsWithTheApplication_andIsShownWithItsConsumers() {
        withAggregate(newDatabase()).run(context -> {
            publish(context);
            awaitCount(context, 1);
            String consumer = "orders/" + aggregate(context).consumerName();

            assertThat(context.getBean(HealthIndicator.class).health().getDetails())
                    .extracting("consumers")
                    .asInstanceOf(InstanceOfAssertFactories.MAP)
                    .containsEntry(consumer, "UP");
            EventSqlEndpoint.Overview overview = (EventSqlEndpoint.Overview)
                    context.getBean(EventSqlEndpoint.class).overview().getBody();
            assertThat(overview.consumers())
                    .extracting(member -> member.stream() + "/" + member.consumer() + " " + member.running())
                    .containsExactly(consumer + " true");
        });
    }

    @Test
    void context_stoppedAndStarted_continues() {
        withAggregate(newDatabase()).run(context -> {
            publish(context);
            awaitCount(context, 1);
            ConfigurableApplicationContext source = context.getSourceApplicationContext();
            EventSqlContinuousAggregates aggregates = context.getBean(EventSqlContinuousAggregates.class);

            source.stop();
            assertThat(context.getBean(EventSql.class).subscriptions()).noneMatch(Subscription::isRunning);
            assertThatExceptionOfType(NoSuchElementException.class)
                    .isThrownBy(() -> aggregates.aggregate(SPEC.name()))
                    .withMessageContaining("declared: [order_minutes]");
            publish(context);

            source.start();
            awaitCount(context, 2);
        });
    }

    @Test
    void nameDeclaredTwice_failsTheStart() {
        withAggregate(sharedDatabase())
                .withBean("again", ContinuousAggregateSpec.class, () -> SPEC)
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .hasMessageContaining("order_minutes"));
    }

    @Test
    void applicationWithoutAggregates_hasNoBeanForThem() {
        application
                .withConfiguration(AutoConfigurations.of(EventSqlAggregateAutoConfiguration.class))
                .withBean(DataSource.class, AutoConfigurationFixture::sharedDatabase)
                .run(context -> assertThat(List.of(context.getBeanNamesForType(EventSqlContinuousAggregates.class)))
                        .isEmpty());
    }
}
