package io.eventsql.spring.internal.observation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.RetentionStatus;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlMetricsAutoConfiguration;
import io.eventsql.spring.fixture.FreshDatabase;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.sql.Connection;
import java.sql.Statement;
import java.time.Duration;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.jdbc.core.JdbcTemplate;

/**
 * The values of the meters of retention, against segments that expire by the limit of a property. Two segments of 100 events
 * expire. A transaction uses the first one, so that its space is not returned, and the table of the partition, so that the
 * other one, which is empty, is not dropped.
 */
class RetentionMetersIT {
    private final ApplicationContextRunner metered = new ApplicationContextRunner()
            .withPropertyValues(
                    "eventsql.streams.logs.partitions=1",
                    "eventsql.streams.logs.segment-size=100",
                    "eventsql.streams.logs.retention.max-events=100")
            .withConfiguration(AutoConfigurations.of(
                    EventSqlAutoConfiguration.class,
                    EventSqlMetricsAutoConfiguration.class,
                    MetricsAutoConfiguration.class,
                    SimpleMetricsExportAutoConfiguration.class,
                    CompositeMeterRegistryAutoConfiguration.class));

    @Test
    void retention_segmentsExpire_areCountedAndShownUntilTheirTablesAreDropped() {
        try (FreshDatabase fresh = new FreshDatabase()) {
            metered.withBean(DataSource.class, fresh::dataSource).run(context -> {
                EventSql eventSql = context.getBean(EventSql.class);
                DataSource database = eventSql.shards().getFirst().dataSource();
                eventSql.publisher()
                        .publishAll(
                                "logs",
                                IntStream.range(0, 350)
                                        .mapToObj(i -> Event.ofText("event " + i))
                                        .toList());
                try (Connection reader = database.getConnection();
                        Statement statement = reader.createStatement()) {
                    reader.setAutoCommit(false);
                    statement.execute(
                            "LOCK TABLE ONLY eventsql.events_logs__p0, ONLY eventsql.events_logs__p0_s0 IN ACCESS SHARE MODE");
                    runPass(database);
                    assertWhileRead(eventSql, context.getBean(MeterRegistry.class));
                    reader.rollback();
                }

                runPass(database);
                await().until(() ->
                        call(database, "eventsql.drop_empty_segments_v1(false)").equals("0"));
                MeterRegistry afterwards =
                        new SimpleMeterRegistry(); // the other one shows its last reading for a while
                try (EventSqlGauges gauges =
                        new EventSqlGauges(eventSql, Duration.ofMinutes(1), Duration.ofMinutes(1), 0)) {
                    gauges.bindTo(afterwards);
                    await().untilAsserted(() -> {
                        assertThat(gauge(afterwards, "eventsql.retention.blocked.segments"))
                                .isZero();
                        assertThat(gauge(afterwards, "eventsql.retention.empty.tables"))
                                .isZero();
                        assertThat(counter(afterwards, "eventsql.retention.expired.events"))
                                .isEqualTo(200);
                    });
                }
            });
        }
    }

    private static void assertWhileRead(EventSql eventSql, MeterRegistry registry) {
        RetentionStatus status = eventSql.retentionStatus(0);
        assertThat(status.expiredBytes()).isPositive();
        await().untilAsserted(() -> {
            assertThat(counter(registry, "eventsql.retention.expired.events")).isEqualTo(200);
            assertThat(counter(registry, "eventsql.retention.expired.size")).isEqualTo(status.expiredBytes());
            assertThat(gauge(registry, "eventsql.retention.blocked.segments")).isOne();
            assertThat(gauge(registry, "eventsql.retention.empty.tables")).isOne();
        });
    }

    /** Runs a whole pass; the application's own passes may take steps of it. */
    private static void runPass(DataSource database) {
        await().until(() -> call(database, "eventsql.expire_v1()"), "finished"::equals);
        await().until(() -> call(database, "eventsql.expire_v1()"), "finished"::equals);
    }

    private static String call(DataSource database, String function) {
        return String.valueOf(new JdbcTemplate(database).queryForObject("SELECT " + function, String.class));
    }

    private static double gauge(MeterRegistry registry, String name) {
        return registry.get(name).tags("shard", "shard0").gauge().value();
    }

    private static double counter(MeterRegistry registry, String name) {
        return registry.get(name).tags("shard", "shard0").functionCounter().count();
    }
}
