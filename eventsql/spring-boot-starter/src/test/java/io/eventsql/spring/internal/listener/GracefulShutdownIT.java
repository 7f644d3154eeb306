package io.eventsql.spring.internal.listener;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.spring.EventSqlListener;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Goal: an application can be closed and started at any moment. Method: publish without a pause, close and start the
 * application several times while events are published, and compare the handled events with the published ones.
 */
class GracefulShutdownIT extends ListenerFixture {
    private static final int RUNS = 3;
    private static final int EVENTS_PER_RUN = 100;
    private static final int KEYS = 7;

    /** The events of all runs, in their order. */
    private static final Map<String, ConcurrentLinkedQueue<String>> BY_KEY = new ConcurrentHashMap<>();

    private static final AtomicInteger HANDLED = new AtomicInteger();

    private static void add(StoredEvent event) {
        BY_KEY.computeIfAbsent(event.key(), key -> new ConcurrentLinkedQueue<>())
                .add(event.text());
        HANDLED.incrementAndGet();
    }

    static class Single {
        @EventSqlListener(stream = "${shutdown}", consumer = "c")
        void on(StoredEvent event) {
            add(event);
        }
    }

    static class Keys {
        @EventSqlListener(stream = "${shutdown}", consumer = "c", keyConcurrency = "5")
        void on(StoredEvent event) {
            add(event);
        }
    }

    static class Batch {
        @EventSqlListener(stream = "${shutdown}", consumer = "c", batch = true, batchSize = "20")
        void on(List<StoredEvent> events) {
            events.forEach(GracefulShutdownIT::add);
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {Single.class, Keys.class, Batch.class})
    void application_closedAndStartedUnderLoad_losesAndRepeatsNothing(Class<?> listener) throws Exception {
        BY_KEY.clear();
        HANDLED.set(0);
        String name = stream + "_load";
        eventSql.createStream(StreamSpec.of(name).withPartitions(3));
        AtomicBoolean publishing = new AtomicBoolean(true);
        AtomicInteger published = new AtomicInteger();
        try (ExecutorService load = Executors.newSingleThreadExecutor()) {
            Future<?> publisher = load.submit(() -> {
                while (publishing.get()) {
                    int number = published.getAndIncrement();
                    eventSql.publisher().publish(name, Event.ofText("key-" + number % KEYS, Integer.toString(number)));
                }
            });
            for (int run = 0; run < RUNS; run++) {
                int before = HANDLED.get();
                application()
                        .withPropertyValues("shutdown=" + name)
                        .withBean(listener)
                        .run(context -> await().until(() -> HANDLED.get() >= before + EVENTS_PER_RUN));
                // Closed in the middle of it.
                assertThat(publisher.isDone()).isFalse();
            }
            publishing.set(false);
            publisher.get();
        }
        application()
                .withPropertyValues("shutdown=" + name)
                .withBean(listener)
                .run(context -> await().until(() -> HANDLED.get() >= published.get()));
        assertThat(HANDLED).as("each once").hasValue(published.get());
        for (int key = 0; key < KEYS; key++) {
            int first = key;
            assertThat(BY_KEY.get("key-" + key))
                    .as("in the order of the key")
                    .containsExactlyElementsOf(IntStream.range(0, published.get())
                            .filter(number -> number % KEYS == first)
                            .mapToObj(Integer::toString)
                            .toList());
        }
    }
}
