package io.eventsql.spring.internal.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.StreamSpec;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.spring.boot.EventSqlAutoConfiguration;
import io.eventsql.spring.boot.EventSqlHealthAutoConfiguration;
import io.eventsql.spring.fixture.FreshDatabase;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;

/** The status of the health indicator. */
class EventSqlHealthIndicatorIT {
    private static final AtomicInteger STREAMS = new AtomicInteger();

    private static FreshDatabase shared;

    /** Only a database that hangs takes that long. */
    private final ApplicationContextRunner application = new ApplicationContextRunner()
            .withPropertyValues("eventsql.health.timeout=30s")
            .withConfiguration(
                    AutoConfigurations.of(EventSqlAutoConfiguration.class, EventSqlHealthAutoConfiguration.class));

    private final String stream = "orders" + STREAMS.incrementAndGet();

    @BeforeAll
    static void openDatabase() {
        shared = new FreshDatabase();
    }

    @AfterAll
    static void closeDatabase() {
        shared.close();
    }

    /** Returns an application over the database of the class, in which a test has a stream of its own. */
    private ApplicationContextRunner application() {
        return application(shared);
    }

    private ApplicationContextRunner application(FreshDatabase database) {
        return application.withBean(DataSource.class, database::dataSource);
    }

    private static Health health(ApplicationContext context) {
        return context.getBean(EventSqlHealthIndicator.class).health();
    }

    @Test
    void shardAvailableAndConsumerRunning_isUp() {
        application().run(context -> {
            EventSql eventSql = context.getBean(EventSql.class);
            eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
            eventSql.subscribe(ConsumerSpec.of(stream, "mailer"), event -> {});

            Health health = health(context);

            assertThat(health.getStatus()).isEqualTo(Status.UP);
            assertThat(health.getDetails())
                    .containsEntry("shards", Map.of(eventSql.shards().getFirst().name(), "UP"))
                    .containsEntry("consumers", Map.of(stream + "/mailer", "UP"))
                    .containsEntry("stoppedPartitions", Map.of());
        });
    }

    @Test
    void shardHangs_isDownInTime_withoutThreadsPilingUp() {
        try (FreshDatabase database = new FreshDatabase()) {
            application(database)
                    .withPropertyValues("eventsql.health.timeout=500ms")
                    .run(context -> {
                        database.hang();

                        List<Health> answers = IntStream.range(0, 5)
                                .mapToObj(i -> health(context))
                                .toList();

                        assertThat(answers).allSatisfy(health -> {
                            assertThat(health.getStatus()).isEqualTo(Status.DOWN);
                            assertThat(health.getDetails().get("shards").toString())
                                    .contains("no response within 500 ms");
                            assertThat(health.getDetails()).containsKey("stoppedPartitions");
                        });
                        assertThat(Thread.getAllStackTraces().keySet().stream()
                                        .filter(thread -> thread.getName().startsWith("eventsql-health-")))
                                .as("one for each of: the shard, consumers, a move of keys")
                                .hasSizeLessThanOrEqualTo(3);
                        database.resume();
                        await().untilAsserted(() ->
                                assertThat(health(context).getStatus()).isEqualTo(Status.UP));
                    });
        }
    }

    @Test
    void consumer_deleted_isDown() {
        application().run(context -> {
            EventSql eventSql = context.getBean(EventSql.class);
            eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
            eventSql.subscribe(ConsumerSpec.of(stream, "mailer"), event -> {});
            eventSql.consumer(stream, "mailer").delete();

            await().untilAsserted(() -> {
                Health health = health(context);
                assertThat(health.getStatus()).isEqualTo(Status.DOWN);
                assertThat(health.getDetails()).containsEntry("consumers", Map.of(stream + "/mailer", "DOWN"));
            });
        });
    }

    @Test
    void partitionStopped_isListed_withTheConfiguredStatus() {
        assertStopped(application(), stream, Status.UP);
        assertStopped(
                application().withPropertyValues("eventsql.health.stopped-partitions-status=OUT_OF_SERVICE"),
                stream + "_again",
                Status.OUT_OF_SERVICE);
    }

    private static void assertStopped(ApplicationContextRunner application, String stream, Status status) {
        application.run(context -> {
            EventSql eventSql = context.getBean(EventSql.class);
            eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
            eventSql.subscribe(
                    ConsumerSpec.of(stream, "mailer")
                            .withFailurePolicy(FailurePolicy.STOP)
                            .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                    event -> {
                        throw new IllegalStateException("thrown by the test");
                    });
            eventSql.publisher().publish(stream, Event.ofText("x"));

            await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> {
                Health health = health(context);
                assertThat(health.getDetails().get("stoppedPartitions").toString())
                        .contains(stream + "/mailer", "shard shard0, partition 0 at offset 0", "thrown by the test");
                assertThat(health.getStatus()).isEqualTo(status);
            });
        });
    }

    /** The consumer of another process, which has died. */
    @Test
    void consumerWithoutMembers_isShown_withoutChangeOfStatus() {
        try (FreshDatabase database = new FreshDatabase()) {
            assertWithoutMembers(database);
        }
    }

    private void assertWithoutMembers(FreshDatabase database) {
        application(database)
                .withPropertyValues("eventsql.health.stopped-partitions-status=OUT_OF_SERVICE")
                .run(context -> {
                    EventSql eventSql = context.getBean(EventSql.class);
                    eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
                    try (EventSql other =
                            EventSql.builder(database.dataSource()).build()) {
                        other.subscribe(
                                ConsumerSpec.of(stream, "mailer")
                                        .withFailurePolicy(FailurePolicy.STOP)
                                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                                event -> {
                                    throw new IllegalStateException("thrown by the test");
                                });
                        eventSql.publisher().publish(stream, Event.ofText("x"));
                        await().atMost(Duration.ofSeconds(120))
                                .untilAsserted(() -> assertThat(health(context).getDetails())
                                        .containsKey("stoppedPartitionsOfOtherProcesses")
                                        .doesNotContainKey("consumersWithoutMembers"));
                    }

                    Health health = health(context);

                    assertThat(health.getStatus()).isEqualTo(Status.UP);
                    assertThat(health.getDetails())
                            .containsEntry("stoppedPartitions", Map.of())
                            .doesNotContainKey("consumersUnknown");
                    assertThat(health.getDetails()
                                    .get("stoppedPartitionsOfOtherProcesses")
                                    .toString())
                            .contains(
                                    stream + "/mailer", "shard shard0, partition 0 at offset 0", "thrown by the test");
                    assertThat(health.getDetails()
                                    .get("consumersWithoutMembers")
                                    .toString())
                            .contains(stream + "/mailer", "1 events behind, the oldest for ");
                });
    }

    @Test
    void circuitBreakerOpen_isShownUntilAnEventIsHandled() {
        application()
                .withPropertyValues("eventsql.health.stopped-partitions-status=OUT_OF_SERVICE")
                .run(context -> {
                    EventSql eventSql = context.getBean(EventSql.class);
                    eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
                    AtomicBoolean failing = new AtomicBoolean(true);
                    eventSql.subscribe(
                            ConsumerSpec.of(stream, "mailer")
                                    .withFailurePolicy(FailurePolicy.DEAD_LETTER)
                                    .withCircuitBreaker(2)
                                    .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                            event -> {
                                if (failing.get()) {
                                    throw new IllegalStateException("thrown by the test");
                                }
                            });
                    for (int i = 0; i < 20; i++) {
                        eventSql.publisher().publish(stream, Event.ofText("key " + i, "x"));
                    }
                    await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> {
                        Health health = health(context);
                        assertThat(health.getStatus()).isEqualTo(Status.OUT_OF_SERVICE);
                        assertThat(health.getDetails()
                                        .get("openCircuitBreakers")
                                        .toString())
                                .contains(stream + "/mailer, shard 0, partition 0", "failures in a row", "pausing for");
                    });
                    failing.set(false);
                    await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> {
                        assertThat(health(context).getStatus()).isEqualTo(Status.UP);
                        assertThat(health(context).getDetails()).doesNotContainKey("openCircuitBreakers");
                    });
                });
    }

    @Test
    void partitionWaitsAtMaxEventsAhead_isListedUntilItContinues() {
        application().run(context -> {
            EventSql eventSql = context.getBean(EventSql.class);
            eventSql.createStream(StreamSpec.of(stream).withPartitions(1));
            CountDownLatch release = new CountDownLatch(1);
            eventSql.subscribe(
                    ConsumerSpec.of(stream, "mailer").withKeyConcurrency(2).withMaxEventsAhead(10), event -> {
                        if (event.offset() == 0) {
                            release.await();
                        }
                    });
            for (int i = 0; i < 50; i++) {
                eventSql.publisher().publish(stream, Event.ofText("key " + i % 5, "x"));
            }
            await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> {
                assertThat(health(context).getStatus()).isEqualTo(Status.UP);
                assertThat(health(context).getDetails())
                        .containsEntry(
                                "blockedPartitions",
                                Map.of(
                                        stream + "/mailer, shard 0, partition 0",
                                        "maxEventsAhead events ahead of the committed offset 0"));
            });
            release.countDown();
            await().atMost(Duration.ofSeconds(120))
                    .untilAsserted(
                            () -> assertThat(health(context).getDetails()).doesNotContainKey("blockedPartitions"));
        });
    }

    @Test
    void threadOfTheLibraryFails_isDownUntilItSucceeds() {
        application().run(context -> {
            AtomicBoolean failing = new AtomicBoolean(true);
            ServiceThread thread = new ServiceThread("eventsql-test", () -> {
                if (failing.get()) {
                    throw new NoClassDefFoundError("thrown by the test");
                }
                LockSupport.parkNanos(1_000_000);
            });
            thread.start();

            await().untilAsserted(() -> {
                assertThat(health(context).getStatus()).isEqualTo(Status.DOWN);
                assertThat(health(context).getDetails().get("failingThreads").toString())
                        .contains("eventsql-test", "thrown by the test");
            });
            failing.set(false);
            await().untilAsserted(() -> {
                assertThat(health(context).getStatus()).isEqualTo(Status.UP);
                assertThat(health(context).getDetails()).doesNotContainKey("failingThreads");
            });
            thread.closeNow();
            assertThat(thread.join(TimeUnit.SECONDS.toNanos(20))).isTrue();
        });
    }

    @Test
    void disabled_orWithoutHealth_backsOff() {
        application()
                .withPropertyValues("management.health.eventsql.enabled=false")
                .run(context -> assertThat(context).doesNotHaveBean(EventSqlHealthIndicator.class));
        application()
                .withClassLoader(new FilteredClassLoader(HealthIndicator.class))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(EventSql.class));
    }
}
