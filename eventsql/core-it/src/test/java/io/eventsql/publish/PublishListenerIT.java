package io.eventsql.publish;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.PublishListener;
import io.eventsql.Settings;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Callbacks of a publish listener, and the state of the buffers. */
class PublishListenerIT {
    private static TestCluster cluster;

    private final RecordingListener recorded = new RecordingListener();

    /** Records its callbacks and then throws, which must have no effect. */
    private static final class RecordingListener implements PublishListener {
        private final List<Appended> appended = new CopyOnWriteArrayList<>();
        private final List<Throwable> failedAppends = new CopyOnWriteArrayList<>();
        private final List<String> failedCalls = new CopyOnWriteArrayList<>();

        @Override
        public void appended(Appended batch) {
            appended.add(batch);
            throw new IllegalStateException("thrown by the test");
        }

        @Override
        public void appendFailed(int shard, Throwable error) {
            failedAppends.add(error);
            throw new IllegalStateException("thrown by the test");
        }

        @Override
        public void callFailed(String stream, int events, EventSqlException error) {
            failedCalls.add(stream + " " + events + " " + error.getClass().getSimpleName());
            throw new IllegalStateException("thrown by the test");
        }
    }

    @BeforeAll
    static void openCluster() {
        cluster = TestCluster.ofShards(1);
        EventSql eventSql = cluster.open();
        eventSql.createStream(TestStreams.of("orders"));
        eventSql.createStream(TestStreams.of("payments"));
    }

    @AfterAll
    static void closeCluster() {
        cluster.close();
    }

    @Test
    void publish_batchesAppended_listenerIsCalled() {
        try (EventSql eventSql = EventSql.builder(cluster.dataSources())
                .publishListener(recorded)
                .build()) {
            eventSql.publisher().publishAll("orders", List.of(Event.ofText("k", "12345"), Event.ofText("k", "67890")));
            eventSql.publisher().publish("payments", Event.ofText("x"));
            await().untilAsserted(() -> assertThat(recorded.appended).hasSize(2));
        }

        PublishListener.Appended first = recorded.appended.getFirst();
        assertThat(first.shard()).isZero();
        assertThat(first.calls()).isOne();
        assertThat(first.events()).isEqualTo(2);
        assertThat(first.bytes()).isGreaterThanOrEqualTo(12);
        assertThat(first.nanos()).isPositive();
        assertThat(first.eventsByStream()).containsOnly(Map.entry("orders", 2));
        assertThat(recorded.appended.getLast().eventsByStream()).containsOnlyKeys("payments");
        assertThat(recorded.failedAppends).isEmpty();
        assertThat(recorded.failedCalls).isEmpty();
    }

    @Test
    void publish_shardUnavailable_reportsFailuresAndBufferState() {
        SwitchableDataSource database =
                new SwitchableDataSource(cluster.dataSources().getFirst());
        try (EventSql eventSql = EventSql.builder(database)
                .settings(Settings.builder()
                        .publishTimeout(Duration.ofMillis(1_500))
                        .bufferBytes(100_000)
                        .build())
                .publishListener(recorded)
                .build()) {
            eventSql.publisher().publish("orders", Event.ofText("x"));
            database.setAvailable(false);
            var inFlight = eventSql.publisher().publishAsync("orders", Event.of("k", new byte[60_000]));
            await().until(() -> eventSql.buffers().getFirst().waitingCalls() == 0);
            var waiting = eventSql.publisher().publishAsync("orders", Event.of("k", new byte[30_000]));
            Thread blocked = Thread.ofVirtual()
                    .start(() -> assertThat(
                                    eventSql.publisher().publishAsync("orders", Event.of("k", new byte[50_000])))
                            .isNotNull());

            await().untilAsserted(() -> assertThat(eventSql.buffers())
                    .singleElement()
                    .satisfies(buffer -> {
                        assertThat(buffer.bytes()).isBetween(90_000L, 100_000L);
                        assertThat(buffer.limitBytes()).isEqualTo(100_000);
                        assertThat(buffer.waitingCalls()).isEqualTo(1);
                        assertThat(buffer.blockedCallers()).isEqualTo(1);
                        assertThat(buffer.name())
                                .isEqualTo(eventSql.shards().getFirst().name());
                    }));
            assertThatThrownBy(inFlight::join).hasCauseInstanceOf(EventNotStoredException.class);
            assertThatThrownBy(waiting::join).hasCauseInstanceOf(EventNotStoredException.class);
            await().untilAsserted(() ->
                    assertThat(recorded.failedCalls).hasSize(3).containsOnly("orders 1 EventNotStoredException"));
            assertThat(recorded.failedAppends).isNotEmpty();

            database.setAvailable(true);
            await().until(() -> !blocked.isAlive());
            eventSql.publisher().publish("orders", Event.ofText("again"));
            await().untilAsserted(() -> {
                assertThat(eventSql.buffers().getFirst().bytes()).isZero();
                assertThat(eventSql.buffers().getFirst().blockedCallers()).isZero();
            });
        }
    }

    /** Logging its exception fails, too. */
    @Test
    void listener_exceptionCannotDescribeItself_othersAreCalled() {
        PublishListener indescribable = new PublishListener() {
            @Override
            public void appended(Appended batch) {
                throw new IllegalStateException() {
                    @Override
                    public String getMessage() {
                        throw new IllegalStateException("there is no message");
                    }
                };
            }
        };
        try (CapturedLog log = CapturedLog.ofAppending();
                EventSql eventSql = EventSql.builder(cluster.dataSources())
                        .publishListener(indescribable)
                        .publishListener(recorded)
                        .build()) {
            eventSql.publisher().publish("orders", Event.ofText("x"));
            await().untilAsserted(() -> assertThat(recorded.appended).hasSize(1));
            assertThat(log.lines("Publish listener")).isNotEmpty();
        }
    }

    /** Goal: what a slow listener misses is counted, and logged when it begins and when it ends. */
    @Test
    void listener_isTooSlow_droppedCallbacksAreCountedAndLoggedOnce() throws Exception {
        int calls = 11_000; // 10,000 callbacks may wait
        CountDownLatch release = new CountDownLatch(1);
        AtomicInteger notified = new AtomicInteger();
        PublishListener slow = new PublishListener() {
            @Override
            public void callFailed(String stream, int events, EventSqlException error) {
                awaitOpen(release);
                notified.incrementAndGet();
            }
        };
        SwitchableDataSource database =
                new SwitchableDataSource(cluster.dataSources().getFirst());
        try (CapturedLog log = CapturedLog.ofAppending();
                EventSql eventSql = EventSql.builder(database)
                        .settings(Settings.builder()
                                .publishTimeout(Duration.ofMillis(500))
                                .build())
                        .publishListener(slow)
                        .build()) {
            eventSql.publisher().publish("orders", Event.ofText("before"));
            assertThat(eventSql.droppedPublishCallbacks()).isZero();
            database.setAvailable(false);
            List<CompletableFuture<EventPosition>> failed = IntStream.range(0, calls)
                    .mapToObj(i -> eventSql.publisher().publishAsync("orders", Event.ofText("x")))
                    .toList();
            failed.forEach(call -> assertThatThrownBy(call::join).hasCauseInstanceOf(EventNotStoredException.class));
            await().untilAsserted(
                            () -> assertThat(eventSql.droppedPublishCallbacks()).isBetween(900L, 1_100L));
            assertThat(log.lines("listeners")).hasSize(1).first(STRING).contains("10000 callbacks wait");

            long dropped = eventSql.droppedPublishCallbacks();
            release.countDown();

            await().untilAsserted(() -> assertThat(log.lines("listeners")).hasSize(2));
            assertThat(log.lines("listeners").getLast()).contains("missed " + dropped + " callbacks");
            assertThat(notified.get()).isBetween(9_900, 10_001);
            database.setAvailable(true);
            eventSql.publisher().publish("orders", Event.ofText("after"));
            assertThat(eventSql.droppedPublishCallbacks()).isEqualTo(dropped);
        }
    }

    private static void awaitOpen(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void subscriptions_afterClose_containOnlyOpenOnes() {
        try (EventSql eventSql = cluster.open()) {
            assertThat(eventSql.subscriptions()).isEmpty();
            Subscription mailer = eventSql.subscribe(ConsumerSpec.of("orders", "mailer"), event -> {});
            assertThat(eventSql.subscriptions()).containsExactly(mailer);
            mailer.close();
            assertThat(eventSql.subscriptions()).isEmpty();
        }
    }
}
