package io.eventsql.runner.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.eventsql.Event;
import io.eventsql.runner.driver.PlainProgram.Load;
import io.eventsql.runner.driver.PlainProgram.Rates;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The contract of drivers, tested against the real system. */
@Timeout(120)
public abstract class DriverContract {
    private Driver driver;
    private String stream;

    /** Returns the provider of the driver. */
    protected abstract DriverProvider provider();

    /** Returns the settings of the driver. */
    protected abstract DriverSettings settings();

    /** Skips the test with a message if the environment configures no server. */
    protected static void requireVariable(String variable, String command) {
        if (System.getenv(variable) == null) {
            String why = "skipped: " + variable + " is not set (" + command + ")";
            System.out.println(why);
            Assumptions.abort(why);
        }
    }

    /** Returns whether events of one key arrive in publish order. */
    protected boolean keepsOrderOfKeys() {
        return true;
    }

    /** Returns whether a stream may have several consumers. */
    protected boolean hasSeveralConsumers() {
        return true;
    }

    /** Returns whether a stream can be cleared. */
    protected boolean clears() {
        return true;
    }

    @BeforeEach
    void openDriver() throws Exception {
        driver = provider().open(settings());
        stream = "contract_" + Long.toString(ThreadLocalRandom.current().nextLong(Long.MAX_VALUE), 36);
        driver.createStream(stream, 3);
    }

    @AfterEach
    void closeDriver() {
        driver.close();
    }

    @Test
    void version_namesServerAndNumber() throws Exception {
        assertThat(driver.version()).matches("[A-Z][A-Za-z]+ \\d+\\..*");
    }

    @Test
    void guarantees_areNotBlank() {
        Guarantees guarantees = provider().guarantees(settings().environment());

        assertThat(List.of(guarantees.durability(), guarantees.order(), guarantees.delivery()))
                .noneMatch(String::isBlank);
        assertThat(provider().name()).matches("[a-z][a-z0-9-]*");
    }

    @Test
    void publish_oneSeveralAndAsync_eachEventArrives() throws Exception {
        DeliveryCollector collector = new DeliveryCollector();
        try (AutoCloseable consuming = driver.consume(stream, "c0", collector)) {
            PublishTarget publisher = driver.publisher(stream);
            publisher.publish(events("one", 1));
            publisher.publish(events("several", 250));
            List<CompletableFuture<?>> answers = IntStream.range(0, 100)
                    .<CompletableFuture<?>>mapToObj(
                            i -> publisher.publishAsync(events("async" + i, 1)).toCompletableFuture())
                    .toList();
            CompletableFuture.allOf(answers.toArray(CompletableFuture[]::new)).get();
            publisher.publishAsync(events("batch", 100)).toCompletableFuture().get();

            List<String> expected = new ArrayList<>();
            expected.addAll(texts(events("one", 1)));
            expected.addAll(texts(events("several", 250)));
            IntStream.range(0, 100).forEach(i -> expected.addAll(texts(events("async" + i, 1))));
            expected.addAll(texts(events("batch", 100)));
            assertThat(texts(collector.await(expected.size()))).containsExactlyInAnyOrderElementsOf(expected);
        }
    }

    @Test
    void publish_withKeys_keepsKeysAndOrder() throws Exception {
        PublishTarget publisher = driver.publisher(stream);
        Map<String, List<String>> sent = new TreeMap<>();
        for (int i = 0; i < 300; i++) {
            Event event = Event.ofText("k" + i % 7, "value " + i);
            sent.computeIfAbsent("k" + i % 7, key -> new ArrayList<>()).add(event.text());
            if (i % 2 == 0) {
                publisher.publish(List.of(event));
            } else {
                publisher.publishAsync(List.of(event)).toCompletableFuture().get();
            }
        }

        DeliveryCollector collector = new DeliveryCollector();
        try (AutoCloseable consuming = driver.consume(stream, "c0", collector)) {
            Map<String, List<String>> got = new TreeMap<>();
            for (Event event : collector.await(300)) {
                got.computeIfAbsent(event.key(), key -> new ArrayList<>()).add(event.text());
            }
            if (!keepsOrderOfKeys()) {
                got.values().forEach(values -> values.sort(null));
                sent.values().forEach(values -> values.sort(null));
            }
            assertThat(got).isEqualTo(sent);
        }
    }

    @Test
    void consume_severalConsumers_eachReceivesAllEvents() throws Exception {
        driver.publisher(stream).publish(events("before", 10));
        DeliveryCollector first = new DeliveryCollector();
        DeliveryCollector second = new DeliveryCollector();
        try (AutoCloseable consuming = driver.consume(stream, "c0", first)) {
            if (!hasSeveralConsumers()) {
                assertThatThrownBy(() -> driver.consume(stream, "c1", second))
                        .isInstanceOf(UnsupportedOperationException.class);
                return;
            }
            try (AutoCloseable alsoConsuming = driver.consume(stream, "c1", second)) {
                assertThat(texts(first.await(10))).containsExactlyInAnyOrderElementsOf(texts(events("before", 10)));
                assertThat(texts(second.await(10))).containsExactlyInAnyOrderElementsOf(texts(events("before", 10)));
            }
        }
    }

    @Test
    void clear_removesEvents_laterOnesArrive() throws Exception {
        PublishTarget publisher = driver.publisher(stream);
        publisher.publish(events("before", 100));
        if (!clears()) {
            assertThatThrownBy(() -> driver.clear(stream)).isInstanceOf(UnsupportedOperationException.class);
            return;
        }
        driver.clear(stream);
        publisher.publish(events("after", 100));

        DeliveryCollector collector = new DeliveryCollector();
        try (AutoCloseable consuming = driver.consume(stream, "c0", collector)) {
            assertThat(texts(collector.await(100))).containsExactlyInAnyOrderElementsOf(texts(events("after", 100)));
        }
    }

    /** The loop of a plain program fails unless everything that was published arrives. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void plainProgram_publishesAndConsumes(boolean async) throws Exception {
        Optional<PlainProgram> program = provider().plainProgram();
        if (program.isPresent()) {
            Rates rates = program.get().run(settings(), new Load(4, async, 10, 100, 0.2));
            assertThat(rates.publishRate()).isPositive();
            assertThat(rates.consumeRate()).isPositive();
        }
    }

    private static List<Event> events(String name, int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> Event.ofText(name + " " + i))
                .toList();
    }

    private static List<String> texts(List<Event> events) {
        return events.stream().map(Event::text).toList();
    }
}
