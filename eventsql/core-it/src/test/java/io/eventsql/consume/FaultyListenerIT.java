package io.eventsql.consume;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState.Status;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.ConsumerFixture;
import io.eventsql.fixture.Handled;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Goal: whatever a consumer listener throws, and if it leaves its thread interrupted, events are still fetched, handled and
 * committed, and leases are renewed. Method: every callback is faulty each time it is called, for each fault and failure policy.
 */
class FaultyListenerIT extends ConsumerFixture {
    private static final Duration DEADLINE = Duration.ofSeconds(120);
    private static final String SLOW = "slow";
    private static final String BAD = "bad";

    /** What a listener does to the library's thread. */
    enum Fault {
        ERROR {
            @Override
            void happen() {
                throw new NoClassDefFoundError("a class of the listener");
            }
        },
        /** As of a listener in a language without checked exceptions. */
        UNDECLARED_EXCEPTION {
            @Override
            void happen() {
                FaultyListenerIT.<RuntimeException>throwUndeclared(new IOException("not declared"));
            }
        },
        INTERRUPT {
            @Override
            void happen() {
                Thread.currentThread().interrupt();
            }
        };

        abstract void happen();
    }

    @SuppressWarnings("unchecked")
    private static <E extends Exception> void throwUndeclared(Exception e) throws E {
        throw (E) e;
    }

    /** The callbacks that the test leads to. */
    private static List<String> callbacks(FailurePolicy policy) {
        String ofPolicy = switch (policy) {
            case DEAD_LETTER -> "deadLettered";
            case PARK_KEY -> "keyParked";
            case STOP -> "partitionStopped";
        };
        return List.of(
                "partitionAssigned",
                "partitionRevoked",
                "handled",
                "handlerFailed",
                "handlerTimedOut",
                "lag",
                ofPolicy);
    }

    private static ConsumerListener faultyListener(Fault fault, Set<String> called) {
        return (ConsumerListener) Proxy.newProxyInstance(
                ConsumerListener.class.getClassLoader(),
                new Class<?>[] {ConsumerListener.class},
                (self, method, args) -> {
                    if (method.getDeclaringClass() == ConsumerListener.class) {
                        called.add(method.getName());
                        fault.happen();
                    }
                    return method.getName().equals("toString") ? "faulty listener" : null;
                });
    }

    @ParameterizedTest(name = "{0}, {1}")
    @CsvSource({
        "ERROR, DEAD_LETTER",
        "UNDECLARED_EXCEPTION, DEAD_LETTER",
        "INTERRUPT, DEAD_LETTER",
        "ERROR, PARK_KEY",
        "INTERRUPT, PARK_KEY",
        "ERROR, STOP",
        "INTERRUPT, STOP"
    })
    void callbacks_faulty_eventsAreStillHandled(Fault fault, FailurePolicy policy) throws Exception {
        String stream = newStream(1);
        Set<String> called = ConcurrentHashMap.newKeySet();
        Handled handled = new Handled();
        Set<String> failing = ConcurrentHashMap.newKeySet();
        failing.add(BAD);
        ConsumerSpec spec = consumer(stream)
                .withRetry(RetryPolicy.defaults().withMaxAttempts(2).withDelay(SHORT, SHORT))
                .withFailurePolicy(policy)
                .withHandlerTimeout(Duration.ofMillis(500));
        Settings settings = Settings.builder()
                .pollInterval(Duration.ofMillis(50))
                .lease(Duration.ofSeconds(2))
                .heartbeat(Duration.ofMillis(200))
                .build();
        AtomicInteger slowCalls = new AtomicInteger();
        try (EventSql process = EventSql.builder(cluster.dataSources())
                .settings(settings)
                .listener(faultyListener(fault, called))
                .build()) {
            process.subscribe(spec, event -> {
                if (failing.contains(event.text())) {
                    throw new IllegalStateException("cannot handle " + event.text());
                }
                if (event.text().equals(SLOW) && slowCalls.incrementAndGet() == 1) {
                    await().atMost(DEADLINE).until(() -> called.contains("handlerTimedOut"));
                }
                handled.add(event);
            });
            publishTexts(stream, "first");
            handled.awaitSize(1);
            process.consumer(stream, "c").pause();
            await().atMost(DEADLINE).until(() -> state(stream).getFirst().member() == null);
            process.consumer(stream, "c").resume();
            publishTexts(stream, SLOW, BAD);
            if (policy == FailurePolicy.STOP) {
                awaitStatus(stream, Status.STOPPED);
                failing.clear();
                process.consumer(stream, "c").resume();
            } else {
                await().atMost(DEADLINE)
                        .until(() ->
                                eventSql.consumer(stream, "c").parkedEvents(10).size() == 1);
            }
            await().atMost(DEADLINE).untilAsserted(() -> assertThat(called).containsAll(callbacks(policy)));
            publishTexts(stream, texts(0, 20).toArray(String[]::new));
            awaitLag(stream, 0);
            assertThat(texts(handled.events())).containsAll(texts(0, 20)).endsWith("19");
            assertLeaseIsRenewed(stream);
        }
    }

    private void publishTexts(String stream, String... texts) {
        eventSql.publisher()
                .publishAll(
                        stream,
                        Stream.of(texts)
                                .map(text -> Event.ofText("key-" + text, text))
                                .toList());
    }

    private static List<String> texts(List<StoredEvent> events) {
        return events.stream().map(StoredEvent::text).toList();
    }

    private void assertLeaseIsRenewed(String stream) {
        var before = state(stream).getFirst().leaseUntil();
        await().atMost(DEADLINE).untilAsserted(() -> {
            assertThat(state(stream).getFirst().leaseUntil()).isNotNull();
            assertThat(before == null
                            || before.isBefore(state(stream).getFirst().leaseUntil()))
                    .isTrue();
        });
    }
}
