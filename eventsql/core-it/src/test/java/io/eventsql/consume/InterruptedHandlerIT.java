package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.RetryPolicy;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A handler that leaves its thread interrupted, as many do, neither loses events nor stops its partition. */
class InterruptedHandlerIT {
    private static final int EVENTS = 20;

    private static TestCluster cluster;

    private final String stream = TestStreams.newName();

    @BeforeAll
    static void createDatabase() {
        cluster = TestCluster.ofShards(1);
    }

    @AfterAll
    static void dropDatabase() {
        cluster.close();
    }

    @AfterEach
    void closeInstances() {
        cluster.closeInstances();
    }

    private EventSql open() {
        EventSql eventSql = cluster.open();
        eventSql.createStream(TestStreams.of(stream).withPartitions(1));
        eventSql.publisher()
                .publishAll(
                        stream,
                        IntStream.range(0, EVENTS)
                                .mapToObj(i -> Event.ofText("key", "value" + i))
                                .toList());
        return eventSql;
    }

    private void awaitDrained(EventSql eventSql) {
        await().atMost(Duration.ofSeconds(120))
                .until(() -> eventSql.positions(stream, "c").stream().allMatch(p -> p.lag() == 0));
    }

    @Test
    void lastAttempt_interrupted_deadLettersEventAndContinues() {
        EventSql eventSql = open();
        Handled handled = new Handled();
        eventSql.subscribe(
                ConsumerSpec.of(stream, "c")
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                        .withFailurePolicy(FailurePolicy.DEAD_LETTER),
                event -> {
                    if (event.offset() % 5 == 0) {
                        Thread.currentThread().interrupt();
                        throw new IllegalStateException("interrupted");
                    }
                    handled.add(event);
                });
        handled.awaitSize(EVENTS * 4 / 5);
        awaitDrained(eventSql);
        assertThat(eventSql.consumer(stream, "c").parkedEvents(100)).hasSize(EVENTS / 5);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void deadLetter_interruptedWhileRetrying_eventIsNotSkipped(int keyConcurrency) {
        open();
        SwitchableDataSource dataSource =
                new SwitchableDataSource(cluster.dataSources().getFirst());
        Handled handled = new Handled();
        AtomicReference<Thread> failed = new AtomicReference<>();
        try (EventSql eventSql = EventSql.builder(dataSource).build()) {
            eventSql.subscribe(
                    ConsumerSpec.of(stream, "c")
                            .withKeyConcurrency(keyConcurrency)
                            .withRetry(RetryPolicy.defaults().withMaxAttempts(1))
                            .withFailurePolicy(FailurePolicy.DEAD_LETTER),
                    event -> {
                        if (event.offset() == 3) {
                            dataSource.setAvailable(false);
                            failed.set(Thread.currentThread());
                            throw new IllegalStateException("not handled");
                        }
                        handled.add(event);
                    });
            await().atMost(Duration.ofSeconds(120)).until(() -> failed.get() != null);
            AtomicInteger interrupts = new AtomicInteger();
            await().atMost(Duration.ofSeconds(120))
                    .pollInterval(Duration.ofMillis(20))
                    .until(() -> {
                        failed.get().interrupt(); // as a timer of the handler's that fires late
                        return interrupts.incrementAndGet() == 20;
                    });
            dataSource.setAvailable(true);
            awaitDrained(eventSql);
            assertThat(eventSql.consumer(stream, "c").parkedEvents(100)).hasSize(1);
        }
        assertThat(handled.texts())
                .containsExactlyElementsOf(IntStream.range(0, EVENTS)
                        .filter(i -> i != 3)
                        .mapToObj(i -> "value" + i)
                        .toList());
    }

    @Test
    void transactionalHandler_returnsInterrupted_isCalledOncePerEvent() {
        EventSql eventSql = open();
        AtomicInteger calls = new AtomicInteger();
        eventSql.subscribeTransactional(ConsumerSpec.of(stream, "c"), (event, connection) -> {
            calls.incrementAndGet();
            Thread.currentThread().interrupt();
        });
        awaitDrained(eventSql);
        assertThat(calls).hasValue(EVENTS);
    }
}
