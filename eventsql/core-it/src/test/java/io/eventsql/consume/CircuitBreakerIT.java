package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventHandler;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.StartPosition;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A service that every handler needs is unavailable for a while: the stream is neither dead-lettered nor parked. */
class CircuitBreakerIT extends ConsumerFixture {
    private static final Duration HOUR = Duration.ofHours(1);
    private static final Duration DEADLINE = Duration.ofSeconds(120);
    private static final int FAILURES_MAX = 5;

    /** A service behind the handler. */
    private static final class Service implements EventHandler {
        final AtomicBoolean available = new AtomicBoolean();
        final AtomicInteger calls = new AtomicInteger();
        final Handled handled = new Handled();

        @Override
        public void handle(StoredEvent event) {
            calls.incrementAndGet();
            if (!available.get()) {
                throw new IllegalStateException("service unavailable");
            }
            handled.add(event);
        }
    }

    private static final class Openings implements ConsumerListener {
        final Queue<Integer> opened = new ConcurrentLinkedQueue<>();
        final AtomicInteger closed = new AtomicInteger();
        final CountDownLatch revoked = new CountDownLatch(1);

        @Override
        public void partitionRevoked(ConsumerPartition partition, Reason reason) {
            revoked.countDown();
        }

        @Override
        public void circuitBreakerOpened(ConsumerPartition partition, int failures, Duration delay) {
            assertThat(delay).isPositive();
            opened.add(failures);
        }

        @Override
        public void circuitBreakerClosed(ConsumerPartition partition) {
            closed.incrementAndGet();
        }
    }

    /** A consumer that attempts each event once. */
    private static ConsumerSpec once(String stream, FailurePolicy policy) {
        return consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(1).withDelay(SHORT, SHORT))
                .withFailurePolicy(policy)
                .withCircuitBreaker(FAILURES_MAX);
    }

    /** Pauses for an hour, so that a test that waits for the end of a pause fails. */
    private static ConsumerSpec hourly(String stream) {
        ConsumerSpec spec = once(stream, FailurePolicy.DEAD_LETTER);
        return spec.withRetry(spec.retry().withDelay(HOUR, HOUR));
    }

    private int parkedEvents(String stream) {
        return eventSql.consumer(stream, "c").parkedEvents(10_000).size();
    }

    /** The events that failed for good; with PARK_KEY later events of their keys are parked, too. */
    private long failedEvents(String stream) {
        return eventSql.consumer(stream, "c").parkedEvents(10_000).stream()
                .filter(event -> event.attempts() > 0)
                .count();
    }

    private void awaitOpen(String stream) {
        await().atMost(DEADLINE)
                .untilAsserted(() -> assertThat(state(stream))
                        .anySatisfy(
                                p -> assertThat(p.error()).contains("circuit breaker open", "service unavailable")));
        assertThat(state(stream)).allMatch(p -> p.status() == PartitionState.Status.RUNNING);
    }

    @ParameterizedTest
    @CsvSource({"DEAD_LETTER,1", "PARK_KEY,8"})
    void outage_ends_allOtherEventsAreHandledInOrder(FailurePolicy policy, int keyConcurrency) {
        String stream = newStream(1);
        publish(stream, 0, 200, 40);
        Service service = new Service();
        Openings openings = new Openings();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                        .listener(openings)
                        .build();
                Subscription ignored =
                        process.subscribe(once(stream, policy).withKeyConcurrency(keyConcurrency), service)) {
            awaitOpen(stream);
            await().atMost(DEADLINE).until(() -> openings.opened.size() >= 2);
            assertThat(openings.opened).startsWith(FAILURES_MAX, FAILURES_MAX + 1);
            assertThat(failedEvents(stream)).as("none while it is open").isEqualTo(FAILURES_MAX - 1);

            service.available.set(true);
            awaitLag(stream, 0);
            await().atMost(DEADLINE)
                    .untilAsserted(() -> assertThat(state(stream)).allMatch(p -> p.error() == null));
            assertThat(openings.closed).hasValue(1);
        }
        assertOrderOfKeys(service.handled.events());
        int parked = parkedEvents(stream);
        assertThat(service.handled.size()).isEqualTo(200 - parked);
        assertThat(failedEvents(stream)).isEqualTo(FAILURES_MAX - 1);
        assertThat(parked).isEqualTo((FAILURES_MAX - 1) * (policy == FailurePolicy.DEAD_LETTER ? 1 : 200 / 40));
    }

    @Test
    void outage_keysInParallel_oneCallAtATimeWhileOpen() {
        String stream = newStream(1);
        publish(stream, 0, 150, 150);
        Service service = new Service();
        Openings openings = new Openings();
        int lanes = 50;
        try (EventSql process = EventSql.builder(cluster.dataSources())
                        .listener(openings)
                        .build();
                Subscription ignored = process.subscribe(
                        once(stream, FailurePolicy.DEAD_LETTER).withKeyConcurrency(lanes), service)) {
            await().atMost(DEADLINE).until(() -> openings.opened.size() >= 2);
            // Up to 50 calls were begun when it opened; each pause ends with one more.
            assertThat(service.calls.get()).isLessThanOrEqualTo(FAILURES_MAX + lanes + openings.opened.size());
            service.available.set(true);
            awaitLag(stream, 0);
        }
        assertThat(parkedEvents(stream)).isEqualTo(FAILURES_MAX - 1);
        assertThat(service.handled.size()).isEqualTo(150 - (FAILURES_MAX - 1));
    }

    @Test
    void outage_batchHandler_handlesOneEventAfterAPause() {
        String stream = newStream(1);
        publish(stream, 0, 100, 20);
        Service service = new Service();
        Openings openings = new Openings();
        Queue<Integer> sizes = new ConcurrentLinkedQueue<>();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                        .listener(openings)
                        .build();
                Subscription ignored = process.subscribeBatch(
                        once(stream, FailurePolicy.DEAD_LETTER).withPageEvents(10), events -> {
                            sizes.add(events.size());
                            for (StoredEvent event : events) {
                                service.handle(event);
                            }
                        })) {
            await().atMost(DEADLINE).until(() -> openings.opened.size() >= 2);
            assertThat(sizes).startsWith(10, 1, 1, 1, 1, 1, 1).doesNotContain(2);
            service.available.set(true);
            awaitLag(stream, 0);
        }
        assertThat(sizes).as("batches again").endsWith(10);
        assertThat(parkedEvents(stream)).isEqualTo(FAILURES_MAX - 1);
    }

    @Test
    void outage_manyPartitionsAndOnePermit_partitionsThatSucceedContinue() {
        String stream = newStream();
        publish(stream, 0, 400, 100);
        Service service = new Service();
        Handled elsewhere = new Handled();
        try (Subscription ignored = eventSql.subscribe(hourly(stream).withConcurrency(1), event -> {
            if (event.partition() == 0) {
                service.handle(event);
            }
            elsewhere.add(event);
        })) {
            awaitOpen(stream);
            elsewhere.awaitSize((int) state(stream).stream()
                    .filter(p -> p.partition() != 0)
                    .mapToLong(PartitionState::head)
                    .sum());
        }
    }

    @Test
    void switchedOff_everyEventIsDeadLettered() {
        String stream = newStream(1);
        publish(stream, 0, 30, 15);
        try (Subscription ignored =
                eventSql.subscribe(once(stream, FailurePolicy.DEAD_LETTER).withCircuitBreaker(0), new Service())) {
            awaitLag(stream, 0);
        }
        assertThat(parkedEvents(stream)).isEqualTo(30);
    }

    @Test
    void onlyOneKeyFails_itsEventsAreDeadLettered() {
        String stream = newStream(1);
        for (int i = 0; i < 3 * FAILURES_MAX; i++) {
            eventSql.publisher().publish(stream, Event.ofText("poisoned", Integer.toString(i)));
        }
        try (Subscription ignored = eventSql.subscribe(once(stream, FailurePolicy.DEAD_LETTER), new Service())) {
            awaitLag(stream, 0);
        }
        assertThat(parkedEvents(stream)).isEqualTo(3 * FAILURES_MAX);
    }

    @Test
    void exceptionsThatAreNeverRetried_areDeadLettered() {
        String stream = newStream(1);
        publish(stream, 0, 30, 15);
        ConsumerSpec spec = once(stream, FailurePolicy.DEAD_LETTER);
        try (Subscription ignored = eventSql.subscribe(
                spec.withRetry(spec.retry().withFatal(Set.of(IllegalArgumentException.class))), event -> {
                    throw new IllegalArgumentException("malformed");
                })) {
            awaitLag(stream, 0);
        }
        assertThat(parkedEvents(stream)).isEqualTo(30);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void pause_whileOpen_releasesThePartition(int keyConcurrency) {
        String stream = newStream(1);
        publish(stream, 0, 100, 50);
        try (Subscription ignored =
                eventSql.subscribe(hourly(stream).withKeyConcurrency(keyConcurrency), new Service())) {
            awaitOpen(stream);
            eventSql.consumer(stream, "c").pause();
            await().atMost(DEADLINE).until(() -> state(stream).getFirst().member() == null);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void seek_whileOpen_continuesWithAClosedCircuit(int keyConcurrency) {
        String stream = newStream(1);
        publish(stream, 0, 100, 50);
        Service service = new Service();
        try (Subscription ignored = eventSql.subscribe(hourly(stream).withKeyConcurrency(keyConcurrency), service)) {
            awaitOpen(stream);
            service.available.set(true);
            eventSql.consumer(stream, "c").seek(StartPosition.EARLIEST);
            service.handled.awaitSize(100);
            awaitLag(stream, 0);
            assertThat(state(stream).getFirst().error()).isNull();
        }
    }

    @Test
    void seek_duringTheCallAfterAPause_itsFailureIsNotReportedAsAPause() {
        String stream = newStream(1);
        publish(stream, 0, 100, 50);
        Openings openings = new Openings();
        CountDownLatch called = new CountDownLatch(1);
        Handled handled = new Handled();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                        .listener(openings)
                        .build();
                Subscription ignored = process.subscribe(once(stream, FailurePolicy.DEAD_LETTER), event -> {
                    if (openings.revoked.getCount() == 0) {
                        handled.add(event);
                        return;
                    }
                    if (!openings.opened.isEmpty()) {
                        called.countDown();
                        openings.revoked.await();
                    }
                    throw new IllegalStateException("service unavailable");
                })) {
            await().atMost(DEADLINE).until(() -> called.getCount() == 0);
            eventSql.consumer(stream, "c").seek(StartPosition.EARLIEST);
            handled.awaitSize(100); // the partition is not taken anew before that call has ended
            assertThat(openings.opened).containsExactly(FAILURES_MAX);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void close_whileOpen_endsAtOnceAndTheNextMemberContinues(int keyConcurrency) {
        String stream = newStream(1);
        publish(stream, 0, 100, 50);
        Service service = new Service();
        Subscription first = eventSql.subscribe(hourly(stream).withKeyConcurrency(keyConcurrency), service);
        awaitOpen(stream);
        assertThat(first.close(Duration.ofSeconds(20))).as("all handlers ended").isTrue();
        service.available.set(true);
        try (Subscription ignored = eventSql.subscribe(hourly(stream), service)) {
            service.handled.awaitSize(100 - (FAILURES_MAX - 1));
            awaitLag(stream, 0);
        }
        assertThat(parkedEvents(stream)).isEqualTo(FAILURES_MAX - 1);
    }

    @Test
    void join_whileOpen_movesPartitions() {
        String stream = newStream(2);
        publish(stream, 0, 100, 50);
        Service service = new Service();
        try (EventSql other = cluster.open();
                Subscription ignored = eventSql.subscribe(hourly(stream), service)) {
            await().atMost(DEADLINE).until(() -> state(stream).stream().allMatch(p -> p.error() != null));
            try (Subscription second = other.subscribe(hourly(stream), service)) {
                awaitMembers(stream, 2);
                assertThat(second.isRunning()).isTrue();
            }
        }
    }

    @Test
    void redrive_afterTheOutage_handlesWhatFailedBeforeItOpened() {
        String stream = newStream(1);
        publish(stream, 0, 100, 50);
        Service service = new Service();
        Set<Integer> handled = ConcurrentHashMap.newKeySet();
        try (Subscription ignored = eventSql.subscribe(once(stream, FailurePolicy.DEAD_LETTER), service)) {
            awaitOpen(stream);
            service.available.set(true);
            awaitLag(stream, 0);
            eventSql.consumer(stream, "c").redrive();
            await().atMost(DEADLINE).until(() -> parkedEvents(stream) == 0);
        }
        service.handled.events().forEach(event -> handled.add(Integer.valueOf(event.text())));
        assertThat(handled).hasSize(100);
        assertThat(List.copyOf(service.handled.texts())).doesNotHaveDuplicates();
    }
}
