package io.eventsql.spring.internal.observation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.StreamSpec;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlMetricsAutoConfiguration;
import io.eventsql.spring.fixture.FreshDatabase;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** A consumer that stands still is visible: in meters also without a member, and in the log when a member starts. */
@ExtendWith(OutputCaptureExtension.class)
class StoppedPartitionsIT {
    private static final ConsumerSpec MAILER = ConsumerSpec.of("orders", "mailer")
            .withFailurePolicy(FailurePolicy.STOP)
            .withRetry(RetryPolicy.defaults().withMaxAttempts(1));
    private static final ConsumerSpec PARKING = ConsumerSpec.of("orders", "parking")
            .withFailurePolicy(FailurePolicy.PARK_KEY)
            .withRetry(RetryPolicy.defaults().withMaxAttempts(1));
    private static final ConsumerSpec DELETED = ConsumerSpec.of("orders", "deleted");

    private static FreshDatabase database;

    @BeforeAll
    static void newDatabase() {
        database = new FreshDatabase();
        stopConsumer();
    }

    @AfterAll
    static void closeDatabase() {
        database.close();
    }

    private static ApplicationContextRunner application() {
        return new ApplicationContextRunner()
                .withPropertyValues("eventsql.metrics.consumer-interval=50ms")
                .withConfiguration(AutoConfigurations.of(
                        EventSqlAutoConfiguration.class,
                        EventSqlMetricsAutoConfiguration.class,
                        MetricsAutoConfiguration.class,
                        SimpleMetricsExportAutoConfiguration.class,
                        CompositeMeterRegistryAutoConfiguration.class))
                .withBean(DataSource.class, database::dataSource);
    }

    /**
     * Stops the only partition of a consumer with 9 events, of which two of one key are parked for another one. A third one
     * handles all.
     */
    private static void stopConsumer() {
        application().run(context -> {
            EventSql eventSql = context.getBean(EventSql.class);
            eventSql.createStream(StreamSpec.of("orders").withPartitions(1));
            for (int i = 0; i < 8; i++) {
                eventSql.publisher().publish("orders", Event.ofText(i < 2 ? "bad" : "k" + i, "event " + i));
            }
            eventSql.publisher().publish("orders", Event.ofText("no key"));
            eventSql.subscribe(MAILER, event -> {
                throw new IllegalStateException("thrown by the test");
            });
            eventSql.subscribe(PARKING, event -> {
                if ("bad".equals(event.key()) || event.key() == null) {
                    throw new IllegalStateException("thrown by the test");
                }
            });
            eventSql.subscribe(DELETED, event -> {});
            await().until(() -> state(eventSql, "mailer").status() == PartitionState.Status.STOPPED);
            await().until(() -> state(eventSql, "parking").lag() == 0);
            await().until(() -> state(eventSql, "deleted").lag() == 0);
        });
    }

    private static PartitionState state(EventSql eventSql, String consumer) {
        var states = eventSql.consumer("orders", consumer).state();
        return states.getFirst();
    }

    private static double value(MeterRegistry registry, String name, String consumer) {
        Gauge gauge = registry.find(name)
                .tags("stream", "orders", "consumer", consumer, "shard", "shard0")
                .gauge();
        return gauge == null ? Double.NaN : gauge.value();
    }

    @Test
    void meters_showConsumersWithoutMembers() {
        application().run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            await().untilAsserted(() -> {
                registry.find("eventsql.consumers").gauges().forEach(Gauge::value); // a scrape
                assertThat(value(registry, "eventsql.consumer.stopped", "mailer"))
                        .isOne();
                assertThat(value(registry, "eventsql.consumer.lag", "mailer")).isEqualTo(9);
                assertThat(value(registry, "eventsql.consumer.age", "mailer")).isPositive();
                assertThat(value(registry, "eventsql.consumer.members", "mailer"))
                        .isZero();
                assertThat(value(registry, "eventsql.consumer.paused", "mailer"))
                        .isZero();
                assertThat(value(registry, "eventsql.consumer.offset", "mailer"))
                        .isZero();
                assertThat(value(registry, "eventsql.consumer.unassigned", "mailer"))
                        .isZero();
                assertThat(value(registry, "eventsql.consumer.stopped", "parking"))
                        .isZero();
                assertThat(value(registry, "eventsql.consumer.lag", "parking")).isZero();
                assertThat(value(registry, "eventsql.consumer.offset", "parking"))
                        .isEqualTo(9);
                assertThat(value(registry, "eventsql.consumer.parked", "parking"))
                        .isEqualTo(2);
                assertThat(value(registry, "eventsql.consumer.dead.letters", "parking"))
                        .isOne();
                assertThat(value(registry, "eventsql.consumer.unassigned", "parking"))
                        .isOne();
                assertThat(value(registry, "eventsql.consumer.lag", "deleted")).isZero();
            });
            context.getBean(EventSql.class).consumer("orders", "deleted").delete();
            await().untilAsserted(() -> {
                registry.find("eventsql.consumers").gauges().forEach(Gauge::value);
                assertThat(value(registry, "eventsql.consumer.lag", "deleted")).isNaN();
                assertThat(value(registry, "eventsql.consumer.lag", "mailer")).isEqualTo(9);
            });
        });
    }

    @Test
    void meters_areBounded(CapturedOutput output) {
        application().withPropertyValues("eventsql.metrics.max-consumers=1").run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            await().untilAsserted(() -> {
                assertThat(registry.get("eventsql.consumers").gauge().value()).isOne();
                assertThat(registry.find("eventsql.consumer.lag").gauges()).hasSize(1);
            });
            assertThat(output).containsOnlyOnce("has more than 1 consumers");
        });
        application()
                .withPropertyValues("eventsql.metrics.max-consumers=0")
                .run(context -> assertThat(context.getBean(MeterRegistry.class)
                                .find("eventsql.consumers")
                                .gauges())
                        .isEmpty());
        application()
                .withPropertyValues("eventsql.metrics.consumer-interval=1ms")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("eventsql.metrics.consumer-interval must be between 50 ms and 20 min"));
        application()
                .withPropertyValues("eventsql.metrics.max-consumers=-1")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("eventsql.metrics.max-consumers must be between 0 and 1000"));
    }

    @Test
    void member_starts_theStoppedPartitionIsLogged(CapturedOutput output) {
        application().run(context -> {
            int before = output.getAll().length();
            context.getBean(EventSql.class).subscribe(MAILER, event -> {});
            assertThat(output.getAll().substring(before))
                    .containsPattern(
                            "WARN.*mailer.*orders.*partition 0.*stopped at offset 0.*resume.*thrown by the test");
        });
    }
}
