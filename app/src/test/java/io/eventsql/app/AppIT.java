package io.eventsql.app;

import static io.eventsql.app.AppHttpClient.json;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerPosition;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.eventsdb.EventsDb;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import tools.jackson.databind.JsonNode;

/** The complete app on two shards. */
class AppIT {
    private static final String RUN = "0123abcd";
    private static final String STREAM = "account_created";
    private static final int PARTITIONS = 3;
    private static final int KEYS = 50;
    private static final Duration WAIT_MAX = Duration.ofSeconds(120);
    private static final int EVENTS_OF_KEY = 10;
    private static final int EVENTS = KEYS * EVENTS_OF_KEY;

    private static EventsDb eventsDb;
    private static List<DataSource> shards;

    @BeforeAll
    static void startDatabases() {
        eventsDb = EventsDb.start();
        shards = List.of(eventsDb.dataSource(), eventsDb.createDatabase("second"));
    }

    @AfterAll
    static void stopDatabases() {
        eventsDb.close();
    }

    @Test
    void app_eventsPublished_countsThemCommitsOnShutdownAndContinuesThere() throws Exception {
        try (var app = startApp();
                var client = clientOf(app)) {
            JsonNode health = json(client.send("GET", "/actuator/health"));
            JsonNode eventSql = health.at("/components/eventsql");
            assertThat(eventSql.at("/status").asString()).isEqualTo("UP");
            assertThat(eventSql.at("/details/shards")).hasSize(2);
            assertThat(eventSql.at("/details/consumers")).hasSize(1);

            Set<Integer> shardsUsed = publish();
            assertThat(shardsUsed).as("keys reach both shards").containsExactlyInAnyOrder(0, 1);

            await().atMost(WAIT_MAX)
                    .until(() -> received(client, "measured") == EVENTS + 1 && received(client, "warmup") == 1);

            JsonNode measured = runner(client).get("measured");
            assertThat(measured.get("distinct").asLong()).isEqualTo(EVENTS);
            assertThat(measured.get("duplicates").asLong()).isEqualTo(1);
            assertThat(measured.get("highestNumber").asLong()).isEqualTo(EVENTS - 1);
            assertThat(measured.get("orderViolations").asLong()).isZero();
            assertThat(measured.get("handledBeforeIntended").asLong()).isZero();

            await().atMost(WAIT_MAX).until(() -> metric(client, "eventsql_handled_events_total") == EVENTS + 3);
            assertThat(metric(client, "eventsql_app_events_foreign_total")).isEqualTo(1);
        }
        try (EventSql eventSql = EventSql.builder(shards).build()) {
            assertThat(lag(eventSql)).as("what was handled is committed").isZero();
            assertContinuesWhereItStopped(eventSql);
        }
    }

    private static void assertContinuesWhereItStopped(EventSql eventSql) throws Exception {
        try (var app = startApp();
                var client = clientOf(app)) {
            BenchmarkEvent late = new BenchmarkEvent(RUN, 0, false, EVENTS, EpochMicros.now());
            eventSql.publisher().publish(STREAM, Event.of(late.encode()));

            await().atMost(WAIT_MAX).until(() -> received(client, "measured") > 0);
            await().atMost(WAIT_MAX).until(() -> lag(eventSql) == 0);
            assertThat(received(client, "measured")).isEqualTo(1);
        }
    }

    private static ConfigurableApplicationContext startApp() {
        String first = eventsDb.jdbcUrl();
        String second = eventsDb.jdbcUrl("second");
        return new SpringApplicationBuilder(App.class)
                .run(
                        "--server.port=0",
                        "--DB_URLS=" + first + "," + second,
                        "--DB_USER=" + eventsDb.username(),
                        "--DB_PASSWORD=" + eventsDb.password(),
                        "--PARTITIONS=" + PARTITIONS);
    }

    private static AppHttpClient clientOf(ConfigurableApplicationContext app) {
        return new AppHttpClient(Integer.parseInt(app.getEnvironment().getRequiredProperty("local.server.port")));
    }

    /** Publishes events 0 to EVENTS - 1 with rotating keys, then number 0 again, one warm-up event and one foreign event. */
    private static Set<Integer> publish() {
        Set<Integer> shardsUsed = new HashSet<>();
        try (EventSql eventSql = EventSql.builder(shards).build()) {
            EventPublisher publisher = eventSql.publisher();
            List<Event> events = new ArrayList<>();
            IntStream.range(0, EVENTS).forEach(number -> events.add(event("key-" + number % KEYS, false, number)));
            for (EventPosition position : publisher.publishAll(STREAM, events)) {
                shardsUsed.add(position.shard());
            }
            publisher.publish(STREAM, event("key-0", false, 0));
            publisher.publish(STREAM, event("key-0", true, 0));
            publisher.publish(STREAM, Event.of("key-0", "{\"foreign\":true}".getBytes(UTF_8)));
        }
        return shardsUsed;
    }

    private static Event event(String key, boolean warmup, long number) {
        return Event.of(key, new BenchmarkEvent(RUN, 0, warmup, number, EpochMicros.now()).encode());
    }

    private static long received(AppHttpClient client, String phase) throws Exception {
        JsonNode runner = runner(client);
        return runner.at("/" + phase + "/received").asLong(0);
    }

    /** Returns the report of runner 0, or a missing node before the first event. */
    private static JsonNode runner(AppHttpClient client) throws Exception {
        return json(client.send("GET", "/benchmark-runs/" + RUN)).at("/runners/0");
    }

    /** Returns the sum over the shards. */
    private static double metric(AppHttpClient client, String name) throws Exception {
        return client.send("GET", "/actuator/prometheus")
                .body()
                .lines()
                .filter(line -> line.startsWith(name + "{"))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' '))))
                .sum();
    }

    private static long lag(EventSql eventSql) {
        List<ConsumerPosition> positions = eventSql.positions(STREAM, "app");
        assertThat(positions).hasSize(2 * PARTITIONS);
        return positions.stream().mapToLong(ConsumerPosition::lag).sum();
    }
}
