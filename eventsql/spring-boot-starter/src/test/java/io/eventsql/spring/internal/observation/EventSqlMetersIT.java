package io.eventsql.spring.internal.observation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlMetricsAutoConfiguration;
import io.eventsql.spring.fixture.FreshDatabase;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.jdbc.core.JdbcTemplate;

/** The values of all meters. */
class EventSqlMetersIT {
    /** Generous, so that only a hang fails. */
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    private static final AtomicInteger STREAMS = new AtomicInteger();

    private static FreshDatabase shared;

    private final String stream = "orders" + STREAMS.incrementAndGet();

    private final ApplicationContextRunner application = new ApplicationContextRunner()
            .withPropertyValues("eventsql.metrics.outbox-interval=50ms")
            .withConfiguration(
                    AutoConfigurations.of(EventSqlAutoConfiguration.class, EventSqlMetricsAutoConfiguration.class));
    private final ApplicationContextRunner metered = application.withConfiguration(AutoConfigurations.of(
            MetricsAutoConfiguration.class,
            SimpleMetricsExportAutoConfiguration.class,
            CompositeMeterRegistryAutoConfiguration.class));

    @BeforeAll
    static void openSharedDatabase() {
        shared = new FreshDatabase();
    }

    @AfterAll
    static void closeSharedDatabase() {
        shared.close();
    }

    /** Runs a test with an application over the database of the class, in a stream of its own. */
    private void run(BiConsumer<EventSql, MeterRegistry> test) {
        run(metered, shared, test);
    }

    private void run(
            ApplicationContextRunner runner, FreshDatabase database, BiConsumer<EventSql, MeterRegistry> test) {
        runner.withBean(DataSource.class, database::dataSource).run(context -> {
            EventSql eventSql = context.getBean(EventSql.class);
            eventSql.createStream(StreamSpec.of(stream).withPartitions(2));
            test.accept(eventSql, context.getBean(MeterRegistry.class));
        });
    }

    private static double value(MeterRegistry registry, String name, String... tags) {
        return registry.get(name).tags(tags).gauge().value();
    }

    private static double count(MeterRegistry registry, String name, String... tags) {
        return registry.find(name).tags(tags).counters().stream()
                .mapToDouble(counter -> counter.count())
                .sum();
    }

    @Test
    void publishing_isCounted() {
        run((eventSql, registry) -> {
            eventSql.publisher().publishAll(stream, List.of(Event.ofText("k", "a"), Event.ofText("k", "b")));

            await().untilAsserted(() -> assertThat(count(registry, "eventsql.published", "stream", stream))
                    .isEqualTo(2));
            assertThat(registry.get("eventsql.append").timer().totalTime(TimeUnit.NANOSECONDS))
                    .isPositive();
            assertThat(registry.get("eventsql.append.batch")
                            .tag("shard", "shard0")
                            .summary()
                            .totalAmount())
                    .isEqualTo(2);
            assertThat(registry.get("eventsql.append.size").summary().totalAmount())
                    .isGreaterThanOrEqualTo(4);
            await().untilAsserted(() -> assertThat(value(registry, "eventsql.buffer", "shard", "shard0"))
                    .isZero());
            assertThat(value(registry, "eventsql.buffer.limit")).isEqualTo(16_777_216);
            assertThat(value(registry, "eventsql.buffer.waiting")).isZero();
            assertThat(value(registry, "eventsql.buffer.blocked")).isZero();
        });
    }

    /**
     * Goal: a scrape never finds the gauge of a consumer twice, so one that is removed comes back later than a scrape ends.
     * Method: the row of the reporting process is locked, so that this process seems to have lost the report.
     */
    @Test
    void consumers_reportIsLostAndRegained_gaugesStayAwayForASecond() {
        ApplicationContextRunner reporting = metered.withPropertyValues("eventsql.metrics.consumer-interval=50ms");
        try (FreshDatabase database = new FreshDatabase()) {
            run(reporting, database, this::assertAbsences);
        }
    }

    private void assertAbsences(EventSql eventSql, MeterRegistry registry) {
        Map<Meter.Id, Long> removed = new ConcurrentHashMap<>();
        Map<Meter.Id, Long> absences = new ConcurrentHashMap<>();
        registry.config().onMeterRemoved(meter -> removed.put(meter.getId(), System.nanoTime()));
        registry.config().onMeterAdded(meter -> {
            if (removed.containsKey(meter.getId())) {
                absences.put(meter.getId(), System.nanoTime() - removed.get(meter.getId()));
            }
        });
        String name = "eventsql.consumer.lag";
        try (Subscription ignored = eventSql.subscribe(ConsumerSpec.of(stream, "mailer"), event -> {})) {
            await().atMost(DEADLINE).until(() -> isScrapedWith(registry, name));
            try (Connection connection =
                            eventSql.shards().getFirst().dataSource().getConnection();
                    Statement statement = connection.createStatement()) {
                connection.setAutoCommit(false);
                statement.execute("SELECT 1 FROM eventsql.consumer_reporter FOR UPDATE");
                await().atMost(DEADLINE).until(() -> !isScrapedWith(registry, name));
                connection.rollback();
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
            await().atMost(DEADLINE).until(() -> isScrapedWith(registry, name));
        }
        assertThat(absences.values())
                .isNotEmpty()
                .allMatch(nanos -> nanos >= Duration.ofSeconds(1).toNanos());
    }

    /** Reads the gauge that keeps the report going. */
    private static boolean isScrapedWith(MeterRegistry registry, String name) {
        value(registry, "eventsql.consumers.reporting");
        return registry.find(name).gauge() != null;
    }

    @Test
    void publishing_rejectedByTheDatabase_isAFailedAppendAndAFailure() {
        run((eventSql, registry) -> {
            new JdbcTemplate(eventSql.shards().getFirst().dataSource())
                    .execute("ALTER TABLE eventsql.events_" + stream
                            + " ADD CONSTRAINT no_bad_keys CHECK (key <> 'bad')");
            assertThatThrownBy(() -> eventSql.publisher().publish(stream, Event.ofText("bad", "x")))
                    .hasMessageContaining("no_bad_keys");

            // Listeners are called on a thread of their own.
            await().untilAsserted(() -> assertThat(count(
                            registry, "eventsql.append.failures", "shard", "shard0", "exception", "PSQLException"))
                    .isOne());
            await().untilAsserted(() -> assertThat(
                            count(registry, "eventsql.publish.failures", "exception", "EventNotStoredException"))
                    .isOne());
            assertThat(count(registry, "eventsql.published")).isZero();
        });
    }

    @Test
    void publishing_afterTheEnd_isAFailure() {
        run((eventSql, registry) -> {
            eventSql.close();
            assertThatThrownBy(() -> eventSql.publisher().publish(stream, Event.ofText("x")))
                    .hasMessageContaining("closed");
            assertThat(count(
                            registry,
                            "eventsql.publish.failures",
                            "stream",
                            stream,
                            "exception",
                            "EventNotStoredException"))
                    .isOne();
        });
    }

    @Test
    void handlers_areTimed_andTheirFailuresCounted() {
        run((eventSql, registry) -> {
            String[] tags = {"stream", stream, "consumer", "mailer"};
            ConsumerSpec spec = ConsumerSpec.of(stream, "mailer")
                    .withFailurePolicy(FailurePolicy.PARK_KEY)
                    .withRetry(RetryPolicy.defaults()
                            .withMaxAttempts(2)
                            .withDelay(Duration.ofMillis(1), Duration.ofMillis(1)));
            eventSql.subscribe(spec, event -> {
                if (event.text().equals("bad")) {
                    throw new IllegalStateException("thrown by the test");
                }
            });
            eventSql.publisher().publish(stream, Event.ofText("k", "good"));
            eventSql.publisher().publish(stream, Event.ofText("bad"));
            eventSql.publisher().publish(stream, Event.ofText("k", "bad"));

            await().untilAsserted(() -> {
                assertThat(registry.find("eventsql.handler").tags(tags).timers())
                        .anyMatch(timer -> timer.count() > 0);
                assertThat(count(registry, "eventsql.handled", tags)).isOne();
                assertThat(count(registry, "eventsql.parked", tags)).isOne();
                assertThat(count(registry, "eventsql.dead.letters", tags)).isOne();
            });
            assertThat(count(registry, "eventsql.handler.failures", "exception", "IllegalStateException"))
                    .isEqualTo(4);
            assertThat(count(registry, "eventsql.handler.failures", "retried", "true"))
                    .isEqualTo(2);
        });
    }

    @Test
    void stopsAndTimeouts_areCounted() {
        run((eventSql, registry) -> {
            CountDownLatch end = new CountDownLatch(1);
            eventSql.subscribe(
                    ConsumerSpec.of(stream, "slow").withHandlerTimeout(Duration.ofMillis(100)), event -> end.await());
            eventSql.subscribe(
                    ConsumerSpec.of(stream, "broken")
                            .withFailurePolicy(FailurePolicy.STOP)
                            .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                    event -> {
                        throw new IllegalStateException("thrown by the test");
                    });
            eventSql.publisher().publish(stream, Event.ofText("x"));

            await().untilAsserted(() -> {
                assertThat(count(registry, "eventsql.partition.stops", "consumer", "broken"))
                        .isOne();
                assertThat(count(registry, "eventsql.handler.timeouts", "consumer", "slow"))
                        .isPositive();
            });
            end.countDown();
        });
    }

    @Test
    void lag_ofAPartition_isShownWhileItIsAssigned() {
        run((eventSql, registry) -> {
            CountDownLatch goOn = new CountDownLatch(1);
            Subscription subscription = eventSql.subscribe(ConsumerSpec.of(stream, "mailer"), event -> goOn.await());
            eventSql.publisher()
                    .publishAll(
                            stream, List.of(Event.ofText("k", "a"), Event.ofText("k", "b"), Event.ofText("k", "c")));

            await().untilAsserted(() -> assertThat(lags(registry)).containsExactlyInAnyOrder(0.0, 3.0));
            goOn.countDown();
            await().untilAsserted(() -> assertThat(lags(registry)).containsExactly(0.0, 0.0));
            subscription.close();
            await().untilAsserted(() -> assertThat(lags(registry)).isEmpty());
        });
    }

    private static List<Double> lags(MeterRegistry registry) {
        return registry.find("eventsql.partition.lag").tagKeys("shard", "partition").gauges().stream()
                .map(Gauge::value)
                .toList();
    }

    /** The relay waits for a row that the test has locked, so that there is a backlog. */
    @Test
    void outbox_backlog_isShown() {
        try (FreshDatabase database = new FreshDatabase()) {
            metered.withBean(DataSource.class, database::dataSource).run(context -> {
                EventSql eventSql = context.getBean(EventSql.class);
                MeterRegistry registry = context.getBean(MeterRegistry.class);
                eventSql.createStream(StreamSpec.of(stream).withPartitions(2));
                String shard = eventSql.shards().getFirst().name();
                await().untilAsserted(() -> assertThat(value(registry, "eventsql.outbox.backlog", "outbox", shard))
                        .isZero());
                try (Connection relay = database.dataSource().getConnection();
                        Connection transaction = database.dataSource().getConnection()) {
                    relay.setAutoCommit(false);
                    try (var lock = relay.createStatement()) {
                        lock.execute("SELECT * FROM eventsql.outbox_relay FOR UPDATE");
                    }
                    transaction.setAutoCommit(false);
                    eventSql.outbox().publish(transaction, stream, Event.ofText("x"));
                    transaction.commit();

                    await().untilAsserted(() -> {
                        assertThat(value(registry, "eventsql.outbox.backlog")).isOne();
                        assertThat(registry.get("eventsql.outbox.age")
                                        .timeGauge()
                                        .value(TimeUnit.SECONDS))
                                .isPositive();
                    });
                    assertThat(value(registry, "eventsql.outbox.refused")).isZero();
                    relay.rollback();
                }
                await().untilAsserted(() ->
                        assertThat(value(registry, "eventsql.outbox.backlog")).isZero());
            });
        }
    }

    @Test
    void outbox_databaseHangs_scrapesRespond() {
        try (FreshDatabase database = new FreshDatabase()) {
            metered.withBean(DataSource.class, database::dataSource).run(context -> {
                MeterRegistry registry = context.getBean(MeterRegistry.class);
                await().untilAsserted(() ->
                        assertThat(value(registry, "eventsql.outbox.backlog")).isZero());
                database.hang();

                await().untilAsserted(() ->
                        assertThat(value(registry, "eventsql.outbox.backlog")).isNaN());

                long threads = Thread.getAllStackTraces().keySet().stream()
                        .filter(thread -> thread.getName().startsWith("eventsql-meters-outbox"))
                        .count();
                assertThat(threads).isLessThanOrEqualTo(1);
                database.resume();
                await().untilAsserted(() ->
                        assertThat(value(registry, "eventsql.outbox.backlog")).isZero());
            });
        }
    }

    /** The library calls these callbacks only in rare faults, which other tests show. */
    @Test
    void faultsOfConsuming_areCounted() {
        run((eventSql, registry) -> {
            String[] tags = {"stream", stream, "consumer", "mailer"};
            ConsumerPartition partition = new ConsumerPartition(stream, "mailer", 0, 1);
            EventSqlMeters meters = new EventSqlMeters(registry);

            meters.circuitBreakerOpened(partition, 20, Duration.ofSeconds(1));
            meters.circuitBreakerOpened(partition, 21, Duration.ofSeconds(2));
            meters.eventsErased(partition, 4);
            meters.eventsMissing(partition, 10, 13);
            meters.historyLost(partition, 100, 107);
            meters.handlingBlocked(partition, 5);
            meters.historyLost(0, stream, 1, 200, 211);

            assertThat(count(registry, "eventsql.circuit.breaker.pauses", tags)).isEqualTo(2);
            assertThat(count(registry, "eventsql.events.erased", tags)).isEqualTo(4);
            assertThat(count(registry, "eventsql.events.missing", tags)).isEqualTo(3);
            assertThat(count(registry, "eventsql.history.lost", tags)).isEqualTo(7);
            assertThat(count(registry, "eventsql.partition.blocks", tags)).isEqualTo(1);
            assertThat(count(registry, "eventsql.publish.history.lost", "stream", stream))
                    .isEqualTo(11);
        });
    }

    @Test
    void threadsOfTheLibrary_failuresAreShown() {
        run((eventSql, registry) -> {
            double before =
                    registry.get("eventsql.thread.failures").functionCounter().count();
            assertThat(value(registry, "eventsql.threads.failing")).isZero();
            AtomicBoolean failing = new AtomicBoolean(true);
            ServiceThread thread = new ServiceThread("eventsql-test", () -> {
                if (failing.get()) {
                    throw new NoClassDefFoundError("thrown by the test");
                }
                LockSupport.parkNanos(1_000_000);
            });
            thread.start();

            await().untilAsserted(() ->
                    assertThat(value(registry, "eventsql.threads.failing")).isOne());
            failing.set(false);
            await().untilAsserted(() ->
                    assertThat(value(registry, "eventsql.threads.failing")).isZero());
            assertThat(registry.get("eventsql.thread.failures")
                            .functionCounter()
                            .count())
                    .isGreaterThan(before);
            thread.closeNow();
        });
    }

    @Test
    void callbacks_dropped_areShown() {
        run((eventSql, registry) -> assertThat(registry.get("eventsql.publish.callbacks.dropped")
                        .functionCounter()
                        .count())
                .isZero());
    }

    @Test
    void withoutARegistry_thereAreNoMeters() {
        try (FreshDatabase database = new FreshDatabase()) {
            application
                    .withBean(DataSource.class, database::dataSource)
                    .run(context -> assertThat(context)
                            .hasSingleBean(EventSql.class)
                            .doesNotHaveBean(EventSqlMeters.class)
                            .doesNotHaveBean(EventSqlGauges.class));
            application
                    .withBean(DataSource.class, database::dataSource)
                    .withClassLoader(new FilteredClassLoader(MeterRegistry.class))
                    .run(context -> assertThat(context).hasNotFailed().hasSingleBean(EventSql.class));
        }
    }
}
