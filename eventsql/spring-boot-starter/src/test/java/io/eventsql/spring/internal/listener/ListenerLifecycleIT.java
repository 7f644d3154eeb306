package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.EventSql;
import io.eventsql.InvalidInputException;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.UnknownStreamException;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlListenerContainer;
import io.eventsql.spring.EventSqlListenerRegistry;
import io.eventsql.spring.InvalidListenerException;
import io.eventsql.spring.boot.EventSqlHealthAutoConfiguration;
import io.eventsql.spring.internal.actuate.EventSqlHealthIndicator;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/** Start and stop of listeners, and mistakes with which an application does not start. */
class ListenerLifecycleIT extends ListenerFixture {
    static class Recorder {
        final Queue<String> got = new ConcurrentLinkedQueue<>();

        @EventSqlListener(stream = "${stream}", consumer = "c", autoStartup = "${auto:true}")
        void on(String text) {
            got.add(text);
        }
    }

    @Test
    void listener_withoutAutoStartup_isStartedAndStoppedByTheRegistry() {
        publish("1");
        application().withPropertyValues("auto=false").withBean(Recorder.class).run(context -> {
            EventSqlListenerContainer container =
                    context.getBean(EventSqlListenerRegistry.class).container(stream + "-c");
            Queue<String> got = context.getBean(Recorder.class).got;
            assertThat(container.isRunning()).isFalse();
            assertThat(eventSql.consumer(stream, "c").state()).isEmpty();

            container.start();
            container.start(); // does nothing
            awaitLag(0);
            container.stop();
            container.stop(); // does nothing
            assertThat(container.isRunning()).isFalse();
            publish("2");
            assertThat(got).containsExactly("1");

            container.start();
            awaitLag(0);
            assertThat(got).containsExactly("1", "2");
            assertThat(container.spec().name()).isEqualTo("c");
        });
    }

    @Test
    void registry_unknownId_namesTheKnown() {
        application()
                .withBean(Recorder.class)
                .run(context -> assertThatExceptionOfType(NoSuchElementException.class)
                        .isThrownBy(() ->
                                context.getBean(EventSqlListenerRegistry.class).container("unknown"))
                        .withMessageContaining("unknown")
                        .withMessageContaining(stream + "-c"));
    }

    @Test
    void context_stoppedAndStarted_continues() {
        publish("1");
        application().withBean(Recorder.class).run(context -> {
            awaitLag(0);
            ConfigurableApplicationContext source = context.getSourceApplicationContext();
            source.stop();
            publish("2");
            assertThat(context.getBean(ListenerRegistry.class).isRunning()).isFalse();
            source.start();
            awaitLag(0);
            assertThat(context.getBean(Recorder.class).got).containsExactly("1", "2");
        });
    }

    /** In the phase of Spring Boot's web servers. */
    static class Server implements SmartLifecycle {
        final Queue<String> seen = new ConcurrentLinkedQueue<>();
        private final ObjectProvider<ListenerRegistry> registry; // no dependency: these start together
        private boolean running;

        Server(ObjectProvider<ListenerRegistry> registry) {
            this.registry = registry;
        }

        @Override
        public void start() {
            running = true;
            seen.add("start, listeners " + registry.getObject().isRunning());
        }

        @Override
        public void stop() {
            running = false;
            ListenerRegistry listeners = registry.getObject();
            seen.add("stop, listeners " + listeners.isRunning() + " "
                    + listeners.containers().stream().anyMatch(EventSqlListenerContainer::isRunning));
        }

        @Override
        public boolean isRunning() {
            return running;
        }

        @Override
        public int getPhase() {
            return DEFAULT_PHASE - 1024; // stops before the server itself, which is 1024 lower
        }
    }

    @Test
    void listeners_startAfterAWebServer_andStopBeforeIt() {
        Server[] server = new Server[1];
        application().withBean(Recorder.class).withBean(Server.class).run(context -> {
            server[0] = context.getBean(Server.class);
            assertThat(context.getBean(ListenerRegistry.class).isRunning()).isTrue();
        });
        assertThat(server[0].seen).containsExactly("start, listeners false", "stop, listeners false false");
    }

    static class Slow {
        static final Queue<String> HANDLED = new ConcurrentLinkedQueue<>();
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);

        @EventSqlListener(stream = "${stream}", consumer = "c")
        void on(String text) throws InterruptedException {
            begun.countDown();
            release.await();
            HANDLED.add(text);
        }
    }

    @Test
    void close_whileAMethodRuns_waitsForItAndCommits() {
        publish("1", "2");
        application().withBean(Slow.class).run(context -> {
            Slow slow = context.getBean(Slow.class);
            slow.begun.await();
            Thread closing = Thread.ofPlatform()
                    .start(() -> context.getSourceApplicationContext().close());
            await().until(() -> !context.getBean(ListenerRegistry.class).isRunning());
            assertThat(closing.isAlive()).isTrue();
            slow.release.countDown();
            closing.join();
        });
        assertThat(Slow.HANDLED).containsExactly("1");
        assertThat(eventSql.consumer(stream, "c").state())
                .singleElement()
                .satisfies(partition -> assertThat(partition.lag()).isEqualTo(1));
    }

    @Test
    void process_withRunningListeners_staysAlive() {
        application()
                .withBean(Recorder.class)
                .run(context -> assertThat(keepingAlive()).isTrue());
        await().until(() -> !keepingAlive());
        application()
                .run(context ->
                        assertThat(keepingAlive()).as("without listeners").isFalse());
    }

    static class OnMissing {
        @EventSqlListener(stream = "${stream}_missing", consumer = "c")
        void on(String text) {}
    }

    @Test
    void stream_missing_isCreatedOrFailsTheStart() {
        application()
                .withBean(Recorder.class)
                .withBean(OnMissing.class)
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(UnknownStreamException.class)
                        .hasMessageContaining(stream + "_missing"));
        assertThat(keepingAlive()).isFalse();
        application()
                .withPropertyValues("eventsql.create-missing-streams=true")
                .withBean(OnMissing.class)
                .run(context -> assertThat(eventSql.streams())
                        .extracting(StreamSpec::name)
                        .contains(stream + "_missing"));
    }

    static class Twin {
        @EventSqlListener(stream = "${stream}", consumer = "c", id = "other")
        void on(String text) {}
    }

    static class SameId {
        @EventSqlListener(stream = "${stream}", consumer = "d", id = "${stream}-c")
        void on(String text) {}
    }

    static class WrongName {
        @EventSqlListener(stream = "No Name", consumer = "c")
        void on(String text) {}
    }

    static class BatchOfKeys {
        @EventSqlListener(stream = "${stream}", consumer = "d", batch = true, keyConcurrency = "4")
        void on(List<StoredEvent> events) {}
    }

    /** A variable is another entry than a name in brackets, and has precedence. */
    @Test
    void settings_ofAFileAndTheEnvironment_areMerged() {
        SystemEnvironmentPropertySource variables = new SystemEnvironmentPropertySource(
                "test-systemEnvironment",
                Map.of("EVENTSQL_LISTENERS_" + stream.toUpperCase(Locale.ROOT) + "C_CONCURRENCY", "3"));
        application()
                .withPropertyValues(
                        "auto=false",
                        "eventsql.listeners[" + stream + "-c].concurrency=5",
                        "eventsql.listeners[" + stream + "-c].max-partitions=2")
                .withInitializer(
                        context -> context.getEnvironment().getPropertySources().addFirst(variables))
                .withBean(Recorder.class)
                .run(context -> {
                    EventSqlListenerContainer container =
                            context.getBean(EventSqlListenerRegistry.class).container(stream + "-c");
                    assertThat(container.spec().concurrency()).isEqualTo(3);
                    assertThat(container.spec().maxPartitions()).isEqualTo(2);
                });
    }

    @Test
    void settings_rejected_areReportedByTheirProperties() {
        application()
                .withPropertyValues("eventsql.listeners." + stream + "-c.batch-size=0")
                .withBean(Recorder.class)
                .run(context -> assertThat(context)
                        .getFailure()
                        .isInstanceOf(InvalidListenerException.class)
                        .hasMessageContaining("eventsql.listeners." + stream + "-c.batch-size must be"));
        application()
                .withPropertyValues(
                        "eventsql.listener.failure-policy=dead-letter",
                        "eventsql.listener.dead-letter-stream=" + stream)
                .withBean(Recorder.class)
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(InvalidInputException.class)
                        .satisfies(failure -> assertThat(context.getStartupFailure())
                                .hasStackTraceContaining(
                                        "eventsql.listener.dead-letter-stream must not be the consumer's own stream")));
    }

    static class Hanging {
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);

        @EventSqlListener(stream = "${stream}", consumer = "c")
        void on(String text) throws InterruptedException {
            begun.countDown();
            release.await();
        }
    }

    @Test
    void close_withAMethodThatDoesNotEnd_takesTheCloseTimeoutOnce() {
        publish("1");
        Hanging[] hanging = new Hanging[1];
        long[] started = new long[1];
        application()
                .withPropertyValues("eventsql.close-timeout=4s")
                .withBean(Hanging.class)
                .run(context -> {
                    hanging[0] = context.getBean(Hanging.class);
                    hanging[0].begun.await();
                    started[0] = System.nanoTime();
                });
        Duration took = Duration.ofNanos(System.nanoTime() - started[0]);
        hanging[0].release.countDown();
        assertThat(took).isBetween(Duration.ofMillis(2_500), Duration.ofMillis(6_000));
    }

    @Test
    void container_startedAfterAStopThatTimedOut_isTheOnlyMemberAndHealthIsUp() {
        publish("1");
        application()
                .withConfiguration(AutoConfigurations.of(EventSqlHealthAutoConfiguration.class))
                .withPropertyValues("eventsql.close-timeout=2s", "eventsql.health.timeout=30s")
                .withBean(Hanging.class)
                .run(context -> {
                    EventSqlListenerContainer container =
                            context.getBean(EventSqlListenerRegistry.class).container(stream + "-c");
                    EventSql own = context.getBean(EventSql.class);
                    Hanging hanging = context.getBean(Hanging.class);
                    hanging.begun.await();

                    container.stop();
                    assertThat(own.subscriptions()).isEmpty();
                    hanging.release.countDown();
                    container.start();

                    assertThat(own.subscriptions()).singleElement().matches(Subscription::isRunning);
                    Health health =
                            context.getBean(EventSqlHealthIndicator.class).health();
                    assertThat(health.getStatus()).isEqualTo(Status.UP);
                });
    }

    @Test
    void application_withAMistake_doesNotStart() {
        assertDoesNotStart(Twin.class, "so that each event would reach only one of them");
        assertDoesNotStart(SameId.class, "has the id of");
        assertDoesNotStart(WrongName.class, "the attribute stream must be letters (A to Z, a to z)");
        assertDoesNotStart(BatchOfKeys.class, "has keyConcurrency 4 and is a batch listener");
    }

    private void assertDoesNotStart(Class<?> mistake, String problem) {
        application()
                .withBean(Recorder.class)
                .withBean("mistake", mistake)
                .run(context -> assertThat(context)
                        .getFailure()
                        .isInstanceOf(InvalidListenerException.class)
                        .hasMessageContaining(
                                "@EventSqlListener on bean 'mistake', " + mistake.getSimpleName() + ".on(")
                        .hasMessageContaining(problem));
    }

    @Test
    void application_withoutDatabase_failsWithListeners() {
        applicationWithoutDataSource()
                .withBean(Recorder.class)
                .run(context -> assertThat(context)
                        .getFailure()
                        .isInstanceOf(InvalidListenerException.class)
                        .hasMessageContaining("Recorder.on(String), needs EventSQL"));
        application()
                .withPropertyValues("eventsql.enabled=false")
                .withBean(Recorder.class)
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(ListenerRegistry.class));
    }

    @Test
    void bean_notSingleton_isRejected() {
        application()
                .withBean("many", Recorder.class, Recorder::new, bean -> bean.setScope("prototype"))
                .run(context -> assertThatThrownBy(() -> context.getBean("many"))
                        .rootCause()
                        .isInstanceOf(InvalidListenerException.class)
                        .hasMessageContaining("belongs to a bean that is no singleton"));
    }
}
