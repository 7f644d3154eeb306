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
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Goal: whatever a consumer listener throws, and if it leaves its thread interrupted, events are still fetched, handled and
 * committed, and leases are renewed. Method: one callback is faulty each time it is called, for each callback and fault.
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

    static Stream<Arguments> faultsOfCallbacks() {
        return Stream.of(
                        "partitionAssigned",
                        "partitionRevoked",
                        "handled",
                        "handlerFailed",
                        "handlerTimedOut",
                        "deadLettered",
                        "keyParked",
                        "partitionStopped",
                        "lag")
                .flatMap(callback -> Stream.of(Fault.values()).map(fault -> Arguments.of(callback, fault)));
    }

    private static ConsumerListener faultyListener(String callback, Fault fault, AtomicInteger faults) {
        return (ConsumerListener) Proxy.newProxyInstance(
                ConsumerListener.class.getClassLoader(),
                new Class<?>[] {ConsumerListener.class},
                (self, method, args) -> {
                    if (method.getName().equals(callback)) {
                        faults.incrementAndGet();
                        fault.happen();
                    }
                    return method.getName().equals("toString") ? "faulty listener" : null;
                });
    }

    private static FailurePolicy policyToCall(String callback) {
        return switch (callback) {
            case "keyParked" -> FailurePolicy.PARK_KEY;
            case "partitionStopped" -> FailurePolicy.STOP;
            default -> FailurePolicy.DEAD_LETTER;
        };
    }

    @ParameterizedTest(name = "{0}, {1}")
    @MethodSource("faultsOfCallbacks")
    void callback_faulty_eventsAreStillHandled(String callback, Fault fault) throws Exception {
        String stream = newStream(1);
        FailurePolicy policy = policyToCall(callback);
        AtomicInteger faults = new AtomicInteger();
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
                .listener(faultyListener(callback, fault, faults))
                .build()) {
            process.subscribe(spec, event -> {
                if (failing.contains(event.text())) {
                    throw new IllegalStateException("cannot handle " + event.text());
                }
                if (event.text().equals(SLOW) && slowCalls.incrementAndGet() == 1) {
                    await().atMost(DEADLINE).until(() -> faults.get() > 0);
                }
                handled.add(event);
            });
            publishTexts(stream, "first");
            handled.awaitSize(1);
            process.consumer(stream, "c").pause();
            await().atMost(DEADLINE).until(() -> state(stream).getFirst().member() == null);
            process.consumer(stream, "c").resume();
            if (callback.equals("handlerTimedOut")) {
                publishTexts(stream, SLOW);
            }
            publishTexts(stream, BAD);
            if (policy == FailurePolicy.STOP) {
                awaitStatus(stream, Status.STOPPED);
                failing.clear();
                process.consumer(stream, "c").resume();
            } else {
                await().atMost(DEADLINE)
                        .until(() ->
                                eventSql.consumer(stream, "c").parkedEvents(10).size() == 1);
            }
            await().atMost(DEADLINE).until(() -> faults.get() > 0);
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
