package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerControl;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventFailedException;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.InvalidInputException;
import io.eventsql.ParkedEvent;
import io.eventsql.PartitionState;
import io.eventsql.PartitionState.Status;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.Subscription;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import io.eventsql.fixture.TestStreams;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Failure policies: events whose handler fails are retried, stop the partition, are dead-lettered or parked. */
class FailurePolicyIT extends ConsumerFixture {
    private static ConsumerSpec attempts(String stream, int attempts, FailurePolicy policy) {
        return consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(attempts).withDelay(SHORT, SHORT))
                .withFailurePolicy(policy);
    }

    /** Records an event as handled unless its text is in {@code failing}. */
    private static void handle(StoredEvent event, Handled handled, Set<String> failing, Queue<String> tried) {
        tried.add(event.text());
        if (failing.contains(event.text())) {
            throw new IllegalStateException("cannot handle " + event.text());
        }
        handled.add(event);
    }

    private List<ParkedEvent> parkedEvents(String stream) {
        return eventSql.consumer(stream, "c").parkedEvents(1_000);
    }

    private void awaitParked(String stream, int events) {
        await().atMost(Duration.ofSeconds(120))
                .untilAsserted(() -> assertThat(parkedEvents(stream)).hasSize(events));
    }

    private static List<EventPosition> positions(List<ParkedEvent> events) {
        return events.stream().map(e -> e.event().position()).toList();
    }

    private static List<String> texts(List<ParkedEvent> events) {
        return events.stream().map(e -> e.event().text()).toList();
    }

    @Test
    void stop_attemptsExhausted_stopsOnlyThatPartitionUntilResumed() {
        String stream = newStream();
        Set<String> failing = ConcurrentHashMap.newKeySet();
        failing.add("a2");
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        Queue<String> calls = new ConcurrentLinkedQueue<>();
        Handled handled = new Handled();
        EventSql process = EventSql.builder(cluster.dataSources())
                .listener(new ConsumerListener() {
                    @Override
                    public void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {
                        calls.add("stopped at " + nextOffset);
                    }

                    @Override
                    public void handlerFailed(
                            StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
                        calls.add(event.text() + " " + attempt + " " + willRetry);
                    }
                })
                .build();
        try (process;
                Subscription member = process.subscribe(
                        attempts(stream, 3, FailurePolicy.STOP), event -> handle(event, handled, failing, tried))) {
            publishKeys(stream, "a", "a", "a");
            awaitStatus(stream, Status.STOPPED);
            PartitionState stopped = state(stream).stream()
                    .filter(p -> p.status() == Status.STOPPED)
                    .findFirst()
                    .orElseThrow();
            assertThat(stopped.error()).contains("cannot handle a2").contains("offset 1");
            assertThat(stopped.nextOffset()).isEqualTo(1);
            assertThat(stopped.lag()).isEqualTo(2);
            assertThat(stopped.member()).isNull();
            await().until(() -> calls.contains("stopped at 1"));
            assertThat(calls).containsSubsequence("a2 1 true", "a2 2 true", "a2 3 false", "stopped at 1");
            publish(stream, 0, 40, 40); // other partitions continue
            int elsewhere = (int) state(stream).stream()
                    .filter(p -> p.status() == Status.RUNNING)
                    .mapToLong(PartitionState::head)
                    .sum();
            handled.awaitSize(1 + elsewhere);
            assertThat(member.isRunning()).isTrue();

            failing.clear();
            eventSql.consumer(stream, "c").resume();
            awaitLag(stream, 0);
            handled.awaitSize(43);
            assertThat(tried.stream().filter("a2"::equals)).hasSize(4);
            assertThat(tried.stream().filter("a3"::equals)).hasSize(1);
            assertThat(state(stream)).allMatch(p -> p.status() == Status.RUNNING && p.error() == null);
        }
    }

    @Test
    void retry_exceptionType_decidesWhetherEventIsRetried() {
        String stream = newStream(1);
        RetryPolicy retry = RetryPolicy.defaults()
                .withMaxAttempts(3)
                .withDelay(SHORT, SHORT)
                .withRetryable(Set.of(IOException.class, IllegalStateException.class))
                .withFatal(Set.of(FileNotFoundException.class));
        List<String> tried = Collections.synchronizedList(new ArrayList<>());
        publishKeys(stream, "io", "file", "state", "argument", "ok");
        try (Subscription ignored = eventSql.subscribe(
                consumer(stream).withRetry(retry).withFailurePolicy(FailurePolicy.DEAD_LETTER), event -> {
                    tried.add(event.key());
                    switch (event.key()) {
                        case "io" -> throw new IOException();
                        case "file" -> throw new FileNotFoundException();
                        case "state" -> throw new IllegalStateException();
                        case "argument" -> throw new IllegalArgumentException();
                        default -> {}
                    }
                })) {
            awaitLag(stream, 0);
        }
        assertThat(tried).containsExactly("io", "io", "io", "file", "state", "state", "state", "argument", "ok");
        assertThat(parkedEvents(stream)).extracting(ParkedEvent::attempts).containsExactly(3, 1, 3, 1);
    }

    @ParameterizedTest
    @EnumSource(names = "STOP", mode = EnumSource.Mode.EXCLUDE)
    void retry_attemptsNotSet_areLimited(FailurePolicy policy) {
        String stream = newStream(1);
        List<String> tried = Collections.synchronizedList(new ArrayList<>());
        publishKeys(stream, "bad", "good");
        try (Subscription ignored = eventSql.subscribe(consumer(stream).withFailurePolicy(policy), event -> {
            tried.add(event.key());
            if (event.key().equals("bad")) {
                throw new IllegalStateException("cannot handle it");
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(tried).containsOnlyOnce("good").hasSize(RetryPolicy.DEFAULT_MAX_ATTEMPTS + 1);
        assertThat(parkedEvents(stream)).extracting(ParkedEvent::attempts).containsExactly(10);
    }

    @Test
    void retry_attemptsNotSetAndStop_areUnlimited() {
        String stream = newStream(1);
        List<String> tried = Collections.synchronizedList(new ArrayList<>());
        publishKeys(stream, "bad");
        try (Subscription ignored = eventSql.subscribe(consumer(stream), event -> {
            tried.add(event.key());
            throw new IllegalStateException("cannot handle it");
        })) {
            await().atMost(Duration.ofSeconds(120)).until(() -> tried.size() > 3 * RetryPolicy.DEFAULT_MAX_ATTEMPTS);
            assertThat(state(stream)).allMatch(p -> p.status() == Status.RUNNING);
        }
    }

    @Test
    void deadLetter_failedEvent_isCopiedWithItsOriginAndSkipped() {
        String stream = newStream();
        publishKeys(stream, "a", "b", "a");
        EventPosition position =
                eventSql.publisher().publish(stream, Event.ofText("x", "bad").withHeader("type", "test"));
        StoredEvent published = eventSql.read(position, 1).getFirst();
        Handled handled = new Handled();
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        Handled deadLetters = new Handled();
        try (Subscription ignored = eventSql.subscribe(
                        attempts(stream, 2, FailurePolicy.DEAD_LETTER),
                        event -> handle(event, handled, Set.of("bad"), tried));
                Subscription deadLetterReader = eventSql.subscribe(
                        ConsumerSpec.of(stream + "_dead_letter", "dead_letter_reader"), deadLetters::add)) {
            handled.awaitSize(3);
            StoredEvent copy = deadLetters.awaitSize(1).events().getFirst();
            assertThat(copy.key()).isEqualTo("x");
            assertThat(copy.text()).isEqualTo("bad");
            assertThat(copy.partition()).isEqualTo(published.partition());
            assertThat(copy.headers())
                    .containsEntry("type", "test")
                    .containsEntry("eventsql-dead-letter-stream", stream)
                    .containsEntry("eventsql-dead-letter-partition", Integer.toString(published.partition()))
                    .containsEntry("eventsql-dead-letter-offset", Long.toString(published.offset()))
                    .containsEntry("eventsql-dead-letter-consumer", "c")
                    .containsEntry("eventsql-dead-letter-attempts", "2")
                    .hasEntrySatisfying(
                            "eventsql-dead-letter-error", e -> assertThat(e).contains("cannot handle bad"))
                    .containsKeys("eventsql-dead-letter-time", "eventsql-dead-letter-published-at");
            awaitLag(stream, 0);
            assertThat(parkedEvents(stream)).singleElement().satisfies(e -> {
                assertThat(e.event()).isEqualTo(published);
                assertThat(e.event().headers()).containsExactlyEntriesOf(published.headers());
                assertThat(e.deadLetter()).isEqualTo(copy.position());
                assertThat(e.isDeadLettered()).isTrue();
                assertThat(e.attempts()).isEqualTo(2);
                assertThat(e.error()).contains("cannot handle bad");
                assertThat(e.redriving()).isFalse();
            });
        }
    }

    @Test
    void deadLetter_redriven_isHandledAgainAndRemoved() {
        String stream = newStream(2);
        publish(stream, 0, 20, 20);
        Set<String> failing = ConcurrentHashMap.newKeySet();
        failing.addAll(texts(5, 10));
        Handled handled = new Handled();
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        ConsumerControl control = eventSql.consumer(stream, "c");
        try (Subscription ignored = eventSql.subscribe(
                attempts(stream, 1, FailurePolicy.DEAD_LETTER), event -> handle(event, handled, failing, tried))) {
            awaitParked(stream, 5);
            failing.remove("5");
            failing.remove("6");
            assertThat(control.redrive()).isEqualTo(5);
            awaitParked(stream, 3);
            await().until(() -> parkedEvents(stream).stream().noneMatch(ParkedEvent::redriving));
            assertThat(texts(parkedEvents(stream))).containsExactlyInAnyOrderElementsOf(texts(7, 10));
            assertThat(parkedEvents(stream)).allMatch(e -> e.attempts() == 2);
            failing.clear();
            ParkedEvent one = parkedEvents(stream).getFirst();
            assertThat(control.redrive(List.of(one.event().position()))).isEqualTo(1);
            awaitParked(stream, 2);
            assertThat(control.drop(positions(parkedEvents(stream)))).isEqualTo(2);
            assertThat(parkedEvents(stream)).isEmpty();
            assertThat(control.redrive()).isZero();
        }
        assertThat(handled.size()).isEqualTo(18);
    }

    @Test
    void parkKey_laterEventsOfKey_waitWhileOthersContinue() {
        String stream = newStream(1);
        Set<String> failing = ConcurrentHashMap.newKeySet();
        failing.add("a2");
        Handled handled = new Handled();
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        publishKeys(stream, "a", "b", "a", "b", "a", "c");
        ConsumerSpec spec = attempts(stream, 2, FailurePolicy.PARK_KEY);
        try (Subscription ignored = eventSql.subscribe(spec, event -> handle(event, handled, failing, tried))) {
            awaitLag(stream, 0);
        }
        assertThat(handled.texts()).containsExactly("a1", "b1", "b2", "c1");
        assertThat(tried).containsExactly("a1", "b1", "a2", "a2", "b2", "c1");
        assertThat(parkedEvents(stream)).extracting(e -> e.event().text()).containsExactly("a2", "a3");
        assertThat(parkedEvents(stream)).extracting(ParkedEvent::attempts).containsExactly(2, 0);
        assertThat(state(stream)).singleElement().satisfies(p -> {
            assertThat(p.parkedKeys()).isEqualTo(1);
            assertThat(p.parkedEvents()).isEqualTo(2);
        });

        // A member that starts later keeps the key parked, too; a redrive keeps the order, new events follow.
        failing.clear();
        publishKeys(stream, "a", "d");
        try (Subscription ignored = eventSql.subscribe(spec, event -> handle(event, handled, failing, tried))) {
            awaitLag(stream, 0);
            assertThat(parkedEvents(stream)).hasSize(3);
            assertThat(eventSql.consumer(stream, "c").redrive()).isEqualTo(3);
            awaitParked(stream, 0);
            await().until(() -> state(stream).getFirst().parkedKeys() == 0);
            publishKeys(stream, "a");
            handled.awaitSize(9);
        }
        assertThat(handled.texts()).containsExactly("a1", "b1", "b2", "c1", "d1", "a2", "a3", "a1", "a1");
    }

    @Test
    void parkKey_redriveFails_restOfKeyStaysParkedInOrder() {
        String stream = newStream(1);
        Set<String> failing = ConcurrentHashMap.newKeySet();
        failing.add("a1");
        failing.add("a2");
        Handled handled = new Handled();
        Queue<String> tried = new ConcurrentLinkedQueue<>();
        publishKeys(stream, "a", "a", "a");
        ConsumerControl control = eventSql.consumer(stream, "c");
        try (Subscription ignored = eventSql.subscribe(
                attempts(stream, 1, FailurePolicy.PARK_KEY), event -> handle(event, handled, failing, tried))) {
            awaitParked(stream, 3);
            failing.remove("a1");
            control.redrive(List.of(parkedEvents(stream).getLast().event().position())); // redrives its whole key
            awaitParked(stream, 2);
            await().until(() -> parkedEvents(stream).stream().noneMatch(ParkedEvent::redriving));
            assertThat(handled.texts()).containsExactly("a1");
            assertThat(state(stream).getFirst().parkedKeys()).isEqualTo(1);

            // The failing event is dropped; the other one stays parked until it is redriven.
            assertThat(control.drop(
                            List.of(parkedEvents(stream).getFirst().event().position())))
                    .isEqualTo(1);
            publishKeys(stream, "b");
            handled.awaitSize(2);
            assertThat(texts(parkedEvents(stream))).containsExactly("a3");
            control.drop(positions(parkedEvents(stream)));
            await().until(() -> state(stream).getFirst().parkedKeys() == 0);
            eventSql.publisher().publish(stream, Event.ofText("a", "a4"));
            handled.awaitSize(3);
        }
        assertThat(handled.texts()).containsExactly("a1", "b1", "a4");
    }

    @Test
    void redrive_eventsFailAgainAfterDelays_newEventsAreHandledInBetween() {
        String stream = newStream(1);
        publish(stream, 0, 20, 20);
        RetryPolicy retry = RetryPolicy.defaults()
                .withMaxAttempts(2)
                .withDelay(Duration.ofSeconds(1), Duration.ofSeconds(1))
                .withFatal(Set.of(IllegalArgumentException.class));
        AtomicBoolean areParked = new AtomicBoolean();
        Queue<String> redriven = new ConcurrentLinkedQueue<>();
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(
                consumer(stream).withRetry(retry).withFailurePolicy(FailurePolicy.DEAD_LETTER), event -> {
                    if (event.text().equals("new")) {
                        handled.add(event);
                    } else if (areParked.get()) {
                        redriven.add(event.text());
                        throw new IllegalStateException("retried");
                    } else {
                        throw new IllegalArgumentException("not retried");
                    }
                })) {
            awaitParked(stream, 20);
            areParked.set(true);
            assertThat(eventSql.consumer(stream, "c").redrive()).isEqualTo(20);
            await().until(() -> !redriven.isEmpty());
            eventSql.publisher().publish(stream, Event.ofText("new"));
            handled.awaitSize(1);
            assertThat(redriven).doesNotContain("19");
        }
    }

    @Test
    void parkKey_eventWithoutKey_isDeadLettered() {
        String stream = newStream(1);
        eventSql.publisher().publish(stream, Event.ofText("bad"));
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribe(
                attempts(stream, 1, FailurePolicy.PARK_KEY),
                event -> handle(event, handled, Set.of("bad"), new ConcurrentLinkedQueue<>()))) {
            awaitParked(stream, 1);
        }
        assertThat(parkedEvents(stream).getFirst().isDeadLettered()).isTrue();
    }

    @Test
    void batch_handlerNamesFailedEvent_onlyThatEventIsRetried() {
        String stream = newStream(1);
        publish(stream, 0, 10, 10);
        Handled handled = new Handled();
        List<List<String>> calls = Collections.synchronizedList(new ArrayList<>());
        try (Subscription ignored = eventSql.subscribeBatch(attempts(stream, 2, FailurePolicy.DEAD_LETTER), events -> {
            calls.add(events.stream().map(StoredEvent::text).toList());
            for (StoredEvent event : events) {
                if (event.text().equals("4")) {
                    throw new EventFailedException(event, new IOException("no"));
                }
                handled.add(event);
            }
        })) {
            awaitLag(stream, 0);
        }
        assertThat(handled.texts())
                .as("every event once, except the failing one")
                .containsExactly("0", "1", "2", "3", "5", "6", "7", "8", "9");
        assertThat(texts(parkedEvents(stream))).containsExactly("4");
        assertThat(parkedEvents(stream).getFirst().error()).contains("IOException: no");
        assertThat(calls.getFirst()).containsExactlyElementsOf(texts(0, 10));
    }

    @ParameterizedTest
    @EnumSource(FailurePolicy.class)
    void batch_handlerNamesNoEvent_eachEventIsRetriedAlone(FailurePolicy policy) {
        String stream = newStream(1);
        publish(stream, 0, 10, 10);
        Handled handled = new Handled();
        try (Subscription ignored = eventSql.subscribeBatch(attempts(stream, 2, policy), events -> {
            if (events.stream().anyMatch(e -> e.text().equals("4"))) {
                throw new IllegalStateException("one of " + events.size());
            }
            handled.addAll(events);
        })) {
            if (policy == FailurePolicy.STOP) {
                awaitStatus(stream, Status.STOPPED);
                assertThat(handled.texts()).containsExactlyElementsOf(texts(0, 4));
                assertThat(state(stream).getFirst().nextOffset()).isEqualTo(4);
                return;
            }
            awaitLag(stream, 0);
        }
        assertThat(handled.texts()).containsExactly("0", "1", "2", "3", "5", "6", "7", "8", "9");
        assertThat(texts(parkedEvents(stream))).containsExactly("4");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void parkKey_manyLaterEventsOfKey_areAllParkedInOrder(boolean keyParallel) {
        String stream = newStream(1);
        int events = 1_500;
        publish(stream, 0, events, 10);
        Handled handled = new Handled();
        ConsumerSpec spec = attempts(stream, 1, FailurePolicy.PARK_KEY).withKeyConcurrency(keyParallel ? 8 : 1);
        Set<String> failing = ConcurrentHashMap.newKeySet();
        failing.add("13");
        try (Subscription ignored =
                eventSql.subscribe(spec, event -> handle(event, handled, failing, new ConcurrentLinkedQueue<>()))) {
            awaitLag(stream, 0);
            List<String> ofKey = texts(0, events).stream()
                    .filter(text -> Integer.parseInt(text) % 10 == 3 && Integer.parseInt(text) >= 13)
                    .toList();
            assertThat(texts(parkedEvents(stream))).containsExactlyElementsOf(ofKey);
            assertThat(handled.size()).isEqualTo(events - ofKey.size());
            failing.clear();
            CountDownLatch published = new CountDownLatch(1);
            Thread.ofVirtual().start(() -> {
                publish(stream, events, events + 500, 10);
                published.countDown();
            });
            assertThat(eventSql.consumer(stream, "c").redrive()).isGreaterThanOrEqualTo(ofKey.size());
            handled.awaitSize(events + 500);
            awaitParked(stream, 0);
        }
        assertThat(handled.texts()).containsExactlyInAnyOrderElementsOf(texts(0, events + 500));
        assertOrderOfKeys(handled.events());
    }

    @Test
    void deadLetterStream_otherPartitionCount_isRejected() {
        String stream = newStream(3);
        eventSql.createStream(TestStreams.of(stream + "_d").withPartitions(2));
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> eventSql.subscribe(
                        attempts(stream, 1, FailurePolicy.DEAD_LETTER).withDeadLetterStream(stream + "_d"),
                        event -> {}))
                .withMessageContaining("consumer.deadLetterStream")
                .withMessageContaining("3");
        assertThatExceptionOfType(InvalidInputException.class)
                .isThrownBy(() -> eventSql.subscribe(
                        attempts(stream, 1, FailurePolicy.PARK_KEY).withDeadLetterStream(stream), event -> {}))
                .withMessageContaining("own stream");
    }
}
