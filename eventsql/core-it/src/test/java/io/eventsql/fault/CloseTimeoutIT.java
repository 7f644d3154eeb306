package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.Subscription;
import io.eventsql.fixture.CapturedLog;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.proxy.ProxiedDatabase;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Goal: closing an instance stays within its timeout, whatever hangs. Method: a handler that does not end, or a database
 * that no longer responds; the time of closing is compared with the timeout and a margin for a busy machine, which is
 * shorter than the network timeout.
 */
class CloseTimeoutIT {
    private static final Duration TIMEOUT = Duration.ofSeconds(3);
    private static final Duration MARGIN = Duration.ofSeconds(4);

    private static EventSql open(ProxiedDatabase database) {
        EventSql eventSql = EventSql.builder(database.pool())
                .settings(Settings.builder()
                        .networkTimeout(Duration.ofSeconds(30))
                        .closeTimeout(TIMEOUT)
                        .build())
                .build();
        eventSql.createStream(TestStreams.of("orders").withPartitions(1));
        return eventSql;
    }

    private static Duration closeTime(EventSql eventSql, boolean inTime) {
        long startedAt = System.nanoTime();
        assertThat(eventSql.close(TIMEOUT)).isEqualTo(inTime);
        return Duration.ofNanos(System.nanoTime() - startedAt);
    }

    @Test
    void close_handlerDoesNotEnd_bufferedEventsAreStillStored() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        try (ProxiedDatabase database = ProxiedDatabase.on(TestCluster.server())) {
            EventSql eventSql = open(database);
            eventSql.subscribe(ConsumerSpec.of("orders", "c"), event -> {
                begun.countDown();
                release.await();
            });
            eventSql.publisher().publish("orders", Event.ofText("x"));
            begun.await();
            CompletableFuture<Duration> closed = CompletableFuture.supplyAsync(() -> closeTime(eventSql, false));
            await().until(() -> eventSql.subscriptions().isEmpty()
                    || !eventSql.subscriptions().getFirst().isRunning());
            CompletableFuture<EventPosition> late = eventSql.publisher().publishAsync("orders", Event.ofText("y"));
            assertThat(closed.join()).isLessThan(TIMEOUT.plus(MARGIN));
            assertThat(late.join().offset()).isEqualTo(1);
            release.countDown();
        }
    }

    /** Goal: what closing cuts off is logged: handlers that still run, and what is handled again. */
    @Test
    void close_handlerDoesNotEndAndOffsetsAreNotCommitted_logsWhatIsCutOff() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        try (ProxiedDatabase database = ProxiedDatabase.on(TestCluster.server());
                CapturedLog consuming = CapturedLog.ofConsuming();
                CapturedLog appending = CapturedLog.ofAppending()) {
            EventSql eventSql = open(database);
            ConsumerSpec spec = ConsumerSpec.of("orders", "c").withCommitInterval(Duration.ofMinutes(1));
            eventSql.subscribe(spec, event -> {
                if (event.offset() == 3) {
                    begun.countDown();
                    release.await();
                }
            });
            for (int i = 0; i < 4; i++) {
                eventSql.publisher().publish("orders", Event.ofText("k", "x"));
            }
            begun.await();
            database.proxy().blackhole();
            CompletableFuture<EventPosition> call = eventSql.publisher().publishAsync("orders", Event.ofText("y"));

            eventSql.close(TIMEOUT);

            assertThat(call).isCompletedExceptionally();
            assertThat(consuming.lines("Consumer c of stream orders"))
                    .anySatisfy(line -> assertThat(line)
                            .startsWith("WARN")
                            .contains("other members handle again")
                            .contains("partition 0 from offset 0 on (3 events handled, not committed)")
                            .contains("whose handler has been running for"));
            assertThat(appending.lines("Closing before all events were appended"))
                    .singleElement()
                    .asString()
                    .contains("calls");
            database.proxy().heal();
            release.countDown();
        }
    }

    @Test
    void close_databaseDoesNotRespond_endsInTimeAndFailsTheCalls() throws Exception {
        try (ProxiedDatabase database = ProxiedDatabase.on(TestCluster.server())) {
            EventSql eventSql = open(database);
            CountDownLatch handled = new CountDownLatch(1);
            eventSql.subscribe(ConsumerSpec.of("orders", "c"), event -> handled.countDown());
            eventSql.publisher().publish("orders", Event.ofText("x"));
            handled.await();
            database.proxy().blackhole();
            CompletableFuture<EventPosition> call = eventSql.publisher().publishAsync("orders", Event.ofText("y"));
            assertThat(closeTime(eventSql, false)).isLessThan(TIMEOUT.plus(MARGIN));
            assertThat(call).isCompletedExceptionally();
            assertThat(call.exceptionNow())
                    .isInstanceOfAny(EventNotStoredException.class, EventOutcomeUnknownException.class);
            database.proxy().heal();
        }
    }

    /** A handler that still runs is waited for by the next call, and no call says that it has ended. */
    @Test
    void closeAgain_handlerStillRuns_waitsForIt() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        try (ProxiedDatabase database = ProxiedDatabase.on(TestCluster.server())) {
            EventSql eventSql = open(database);
            Subscription member = eventSql.subscribe(ConsumerSpec.of("orders", "c"), event -> {
                begun.countDown();
                release.await();
            });
            eventSql.publisher().publish("orders", Event.ofText("x"));
            begun.await();
            assertThat(member.close(Duration.ZERO)).isFalse();
            assertThat(member.close(Duration.ofMillis(100))).isFalse();
            CompletableFuture<Boolean> waiting = CompletableFuture.supplyAsync(() -> member.close(TIMEOUT));
            assertThat(eventSql.close(Duration.ofMillis(500))).isFalse();
            assertThat(waiting).isNotDone();
            release.countDown();
            assertThat(waiting.get()).isTrue();
        }
    }

    /** Goal: an interrupt makes closing short, and leaves nothing out: a second call could not do that any more. */
    @Test
    void close_callerIsInterrupted_allThreadsEnd() throws Exception {
        try (ProxiedDatabase database = ProxiedDatabase.on(TestCluster.server())) {
            Set<Thread> ofOthers = libraryThreads();
            EventSql eventSql = open(database);
            CountDownLatch handled = new CountDownLatch(1);
            eventSql.subscribe(ConsumerSpec.of("orders", "c"), event -> handled.countDown());
            eventSql.publisher().publish("orders", Event.ofText("x"));
            handled.await();
            Set<Thread> own = libraryThreads();
            own.removeAll(ofOthers);
            assertThat(own).hasSizeGreaterThan(3);

            Thread.currentThread().interrupt();
            boolean inTime = eventSql.close(TIMEOUT);

            assertThat(Thread.interrupted()).isTrue();
            assertThat(inTime).isFalse();
            await().untilAsserted(() -> assertThat(libraryThreads()).doesNotContainAnyElementsOf(own));
            assertThatThrownBy(() -> eventSql.publisher().publish("orders", Event.ofText("late")))
                    .isInstanceOf(EventNotStoredException.class);
        }
    }

    private static Set<Thread> libraryThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("eventsql-"))
                .collect(Collectors.toSet());
    }
}
