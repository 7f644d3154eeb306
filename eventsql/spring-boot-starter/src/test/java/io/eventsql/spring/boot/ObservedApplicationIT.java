package io.eventsql.spring.boot;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.ConsumerSpec;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.FailurePolicy;
import io.eventsql.PartitionState;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.spring.EventSqlListener;
import io.eventsql.spring.EventSqlObservations;
import io.eventsql.spring.EventSqlTemplate;
import io.eventsql.spring.fixture.Spans;
import io.eventsql.spring.fixture.TestServer;
import io.eventsql.spring.internal.actuate.EventSqlEndpoint;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.sdk.trace.data.SpanData;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.slf4j.MDC;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ObjectMapper;

/** A whole application: its responses over HTTP, and its traces. */
class ObservedApplicationIT {
    private static ConfigurableApplicationContext application;
    private static EventSql eventSql;
    private static HttpClient client;

    @BeforeAll
    static void startApplication() {
        client = HttpClient.newHttpClient();
        application = start("management.endpoints.web.exposure.include=health,prometheus,eventsql");
        eventSql = application.getBean(EventSql.class);
    }

    @AfterAll
    static void stopApplication() {
        client.close();
        application.close();
    }

    @SpringBootConfiguration
    @EnableAutoConfiguration
    static class App {
        @Bean
        Spans spans() {
            return new Spans();
        }

        @Bean
        Handlers handlers() {
            return new Handlers();
        }
    }

    /** A listener that does nothing. */
    static class Handlers {
        @EventSqlListener(stream = "traced", consumer = "mailer")
        void on(String text) {}

        @EventSqlListener(
                stream = "failing_traced",
                consumer = "mailer",
                maxAttempts = "1",
                failurePolicy = "dead-letter")
        void fail(String text) {
            throw new Failure();
        }
    }

    /** Keeps the trace id with which it was logged. */
    static final class Failure extends RuntimeException {
        static final AtomicReference<String> LOGGED_TRACE = new AtomicReference<>();

        @Override
        public String toString() {
            LOGGED_TRACE.compareAndSet(null, MDC.get("traceId"));
            return "Failure";
        }
    }

    private static ConfigurableApplicationContext start(String... properties) {
        return new SpringApplicationBuilder(App.class)
                .properties(
                        "server.port=0",
                        "spring.datasource.url=" + TestServer.newUrl(),
                        "spring.datasource.username=" + TestServer.get().username(),
                        "spring.datasource.password=" + TestServer.get().password(),
                        "spring.datasource.hikari.maximum-pool-size=20",
                        "management.endpoint.health.show-details=always",
                        "management.tracing.sampling.probability=1",
                        "eventsql.metrics.consumer-interval=500ms",
                        "eventsql.streams.traced.partitions=2",
                        "eventsql.streams.failing_traced.partitions=1",
                        "spring.main.banner-mode=off")
                .properties(properties)
                .run();
    }

    private static HttpResponse<String> get(ConfigurableApplicationContext of, String path)
            throws IOException, InterruptedException {
        return send(of, HttpRequest.newBuilder().GET(), path);
    }

    private static HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return get(application, path);
    }

    private static HttpResponse<String> post(String path, String json) throws IOException, InterruptedException {
        return send(
                application,
                HttpRequest.newBuilder()
                        .header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(json)),
                path);
    }

    private static HttpResponse<String> send(
            ConfigurableApplicationContext of, HttpRequest.Builder request, String path)
            throws IOException, InterruptedException {
        String port = of.getEnvironment().getRequiredProperty("local.server.port");
        return client.send(
                request.uri(URI.create("http://localhost:" + port + "/actuator" + path))
                        .build(),
                BodyHandlers.ofString());
    }

    private static void newStream(String name) {
        eventSql.createStream(StreamSpec.of(name).withPartitions(2));
    }

    @Test
    void prometheus_showsMeters() throws Exception {
        newStream("scraped");
        eventSql.subscribe(ConsumerSpec.of("scraped", "mailer"), event -> {});
        eventSql.publisher().publish("scraped", Event.ofText("x"));

        await().untilAsserted(() -> assertThat(get("/prometheus").body())
                .contains(
                        "eventsql_append_seconds_count{shard=\"shard0\"}",
                        "eventsql_append_batch_events_sum",
                        "eventsql_published_events_total{stream=\"scraped\"} 1.0",
                        "eventsql_handler_seconds_count{consumer=\"mailer\",stream=\"scraped\"}",
                        "eventsql_handled_events_total{consumer=\"mailer\",stream=\"scraped\"} 1.0",
                        "eventsql_consumer_lag_events{consumer=\"mailer\",shard=\"shard0\",stream=\"scraped\"} 0.0",
                        "eventsql_consumer_stopped_partitions{consumer=\"mailer\",shard=\"shard0\",stream=\"scraped\"} 0.0",
                        "eventsql_partition_lag_events{consumer=\"mailer\",partition=\"0\",shard=\"shard0\",stream=\"scraped\"}",
                        "eventsql_buffer_bytes{shard=\"shard0\"}",
                        "eventsql_outbox_backlog_events{outbox=\"shard0\"} 0.0",
                        "eventsql_scheduled_events{outbox=\"shard0\"} 0.0",
                        "eventsql_scheduled_overdue_seconds",
                        "eventsql_outbox_age_seconds"));
    }

    /** Every panel of the dashboard shows something, because its names and labels are those of a scrape. */
    @Test
    void dashboard_asksForMetersAndTagsOfAScrape() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        newStream("drawn");
        FailurePolicy[] policies = {FailurePolicy.PARK_KEY, FailurePolicy.DEAD_LETTER, FailurePolicy.STOP};
        for (FailurePolicy policy : policies) {
            eventSql.subscribe(
                    ConsumerSpec.of("drawn", policy.name().toLowerCase(Locale.ROOT))
                            .withFailurePolicy(policy)
                            .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                    event -> {
                        throw new IllegalStateException("thrown by the test");
                    });
        }
        eventSql.subscribe(
                ConsumerSpec.of("drawn", "slow").withHandlerTimeout(Duration.ofMillis(100)), event -> end.await());
        eventSql.subscribe(ConsumerSpec.of("drawn", "handling"), event -> {});
        eventSql.publisher().publish("drawn", Event.ofText("k", "x"));
        JsonNode dashboard = new ObjectMapper()
                .readTree(Files.readString(Path.of("../../monitoring/grafana/dashboards/eventsql.json")));
        List<String> expressions = dashboard.findValuesAsString("expr").stream()
                .filter(expression -> !expression.contains("eventsql_runner_"))
                .toList();
        assertThat(expressions).hasSizeGreaterThan(10);

        try {
            await().atMost(Duration.ofSeconds(120)).untilAsserted(() -> {
                String scrape = get("/prometheus").body();
                Files.writeString(Path.of("target/scrape.txt"), scrape);
                for (String expression : expressions) {
                    assertInScrape(expression, scrape);
                }
            });
        } finally {
            end.countDown();
        }
    }

    private static void assertInScrape(String expression, String scrape) {
        Matcher grouping = Pattern.compile("by \\(([^)]*)\\)").matcher(expression);
        List<String> tags = grouping.find() ? List.of(grouping.group(1).split(", ")) : List.of();
        Matcher name = Pattern.compile("(?:eventsql|jvm|process|system)_\\w+").matcher(expression);
        while (name.find()) {
            String sample = scrape.lines()
                    .filter(line -> line.matches(name.group() + "[{ ].*"))
                    .findFirst()
                    .orElse("");
            assertThat(sample).as("a sample of %s in the scrape", name.group()).isNotEmpty();
            assertThat(tags)
                    .as("tags of %s", sample)
                    .allSatisfy(tag -> assertThat(sample).contains(tag + "="));
        }
    }

    @Test
    void health_isUp() throws Exception {
        HttpResponse<String> health = get("/health");

        assertThat(health.statusCode()).isEqualTo(200);
        assertThat(health.body()).contains("\"eventsql\":{", "\"shards\":{\"shard0\":\"UP\"}");
    }

    @Test
    void endpoint_isNotExposedByDefault() throws Exception {
        try (ConfigurableApplicationContext other = start()) {
            assertThat(get(other, "/health").statusCode()).isEqualTo(200);
            assertThat(get(other, "/eventsql").statusCode()).isEqualTo(404);
            assertThat(other.getBeansOfType(EventSqlEndpoint.class)).isEmpty();
        }
    }

    @Test
    void endpoint_listsStreamsShardsAndConsumers() throws Exception {
        newStream("shown");
        eventSql.subscribe(ConsumerSpec.of("shown", "mailer"), event -> {});
        eventSql.publisher().publish("shown", Event.ofText("x"));

        assertThat(get("/eventsql").body())
                .contains(
                        "\"name\":\"shown\"",
                        "\"name\":\"shard0\",\"connected\":true",
                        "{\"stream\":\"shown\",\"consumer\":\"mailer\",\"running\":true}");
        await().untilAsserted(() -> assertThat(get("/eventsql/shown/mailer").body())
                .contains("\"lag\":0", "\"head\":1", "\"status\":\"RUNNING\""));
        await().untilAsserted(() -> assertThat(get("/eventsql/consumers").body())
                .contains("{\"stream\":\"shown\",\"consumer\":\"mailer\",\"members\":[\"", "\"unavailableShards\":{}")
                .containsPattern("\"shown\",\"consumer\":\"mailer\".*?\"lag\":0,\"behindMs\":0,"
                        + "\"partitions\":\\{\"RUNNING\":2},\"parkedEvents\":0"));
        assertProblem(get("/eventsql/streams"), 404, "There is no list of streams, only of consumers");
    }

    @Test
    void endpoint_unknownNames_areAnsweredWithTheReason() throws Exception {
        newStream("named");
        eventSql.subscribe(ConsumerSpec.of("named", "mailer"), event -> {});
        await().untilAsserted(() -> assertThat(states("named")).hasSize(2));

        assertProblem(get("/eventsql/named/unknown"), 404, "There is no consumer unknown of stream named");
        assertProblem(get("/eventsql/nowhere/mailer"), 404, "nowhere");
        assertProblem(get("/eventsql/named/mailer/else"), 404, "There is no else of a consumer");
        assertProblem(get("/eventsql/named/unknown/parked"), 404, "There is no consumer unknown");
        assertProblem(get("/eventsql/named/mailer/parked?max=0"), 400, "max must be between 1 and");
        assertProblem(get("/eventsql/named/mailer/parked?max=x"), 400, "max must be a number");
        for (String operation : List.of("pause", "resume", "redrive")) {
            assertProblem(post("/eventsql/named/unknown/" + operation, "{}"), 404, "There is no consumer unknown");
            assertProblem(post("/eventsql/nowhere/mailer/" + operation, "{}"), 404, "nowhere");
        }
        assertProblem(
                post("/eventsql/named/unknown/seek", "{\"to\": \"latest\"}"), 404, "There is no consumer unknown");
        assertProblem(post("/eventsql/named/mailer/explode", "{}"), 400, "must be pause, resume, seek or redrive");
    }

    private static void assertProblem(HttpResponse<String> response, int status, String text) {
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        assertThat(response.body()).startsWith("{\"error\":\"").contains(text);
    }

    @Test
    void endpoint_previewsGrowsAndCancels() throws Exception {
        newStream("growing");
        assertThat(post("/eventsql/growing/preview-growth", "{\"partitions\": 5}")
                        .body())
                .contains("\"state\":\"PENDING\"");
        assertThat(post("/eventsql/growing/grow", "{\"partitions\": 5}").body())
                .contains("\"state\":\"GROWN\"")
                .contains("\"partitions\":5");
        assertThat(post("/eventsql/growing/cancel-growth", "{}").statusCode()).isEqualTo(200);
        assertProblem(post("/eventsql/growing/grow", "{}"), 400, "partitions must be given");
        assertProblem(post("/eventsql/growing/shrink", "{\"partitions\": 5}"), 400, "must be preview-growth");
        assertProblem(post("/eventsql/nowhere/grow", "{\"partitions\": 5}"), 404, "nowhere");
        assertThat(eventSql.previewGrowth("growing", 5).isDone()).isTrue();
    }

    @Test
    void endpoint_movesShards() throws Exception {
        assertThat(post("/eventsql/preview-shards", "{\"shards\": \"0\"}").body())
                .contains("\"state\":\"DONE\"", "\"slots\":1024");
        assertThat(post("/eventsql/move-shards", "{\"shards\": \"0\"}").body()).contains("\"transfers\":[]");
        assertThat(post("/eventsql/cancel-shard-move", "{}").statusCode()).isEqualTo(200);
        assertProblem(post("/eventsql/move-shards", "{\"shards\": \"0, 3\"}"), 400, "one is 3");
        assertProblem(post("/eventsql/move-shards", "{}"), 400, "shards must be given");
        assertProblem(post("/eventsql/remove-shard", "{\"shards\": \"0,1\"}"), 400, "the number of one shard");
        assertProblem(post("/eventsql/split-shards", "{\"shards\": \"0\"}"), 400, "must be preview-shards");
    }

    @Test
    void endpoint_pausesAndResumes() throws Exception {
        newStream("paused");
        List<String> handled = new CopyOnWriteArrayList<>();
        eventSql.subscribe(ConsumerSpec.of("paused", "mailer"), event -> handled.add(event.text()));
        await().untilAsserted(() -> assertThat(states("paused")).hasSize(2));

        String onePartition = "{\"shard\": 0, \"partition\": 1}";
        assertProblem(post("/eventsql/paused/mailer/pause", onePartition), 400, "shard must not be given: pause");
        assertThat(states("paused")).extracting(PartitionState::status).containsOnly(PartitionState.Status.RUNNING);

        assertThat(post("/eventsql/paused/mailer/pause", "{}").body()).contains("\"operation\":\"pause\"");
        assertProblem(post("/eventsql/paused/mailer/resume", "{\"partition\": 1}"), 400, "partition must not be given");
        assertThat(states("paused")).extracting(PartitionState::status).containsOnly(PartitionState.Status.PAUSED);
        eventSql.publisher().publish("paused", Event.ofText("x"));
        assertThat(post("/eventsql/paused/mailer/resume", "{}").statusCode()).isEqualTo(200);

        await().untilAsserted(() -> assertThat(handled).containsExactly("x"));
    }

    private static List<PartitionState> states(String stream) {
        return eventSql.consumer(stream, "mailer").state();
    }

    @Test
    void endpoint_seeks() throws Exception {
        newStream("sought");
        List<String> handled = new CopyOnWriteArrayList<>();
        eventSql.subscribe(ConsumerSpec.of("sought", "mailer"), event -> handled.add(event.text()));
        eventSql.publisher().publishAll("sought", List.of(Event.ofText("k", "a"), Event.ofText("k", "b")));
        await().untilAsserted(() -> assertThat(handled).containsExactly("a", "b"));
        int partition = states("sought").stream()
                .filter(state -> state.head() > 0)
                .findFirst()
                .orElseThrow()
                .partition();

        post("/eventsql/sought/mailer/seek", "{\"to\": \"earliest\"}");
        await().untilAsserted(() -> assertThat(handled).containsExactly("a", "b", "a", "b"));
        post("/eventsql/sought/mailer/seek", "{\"to\": \"1\", \"shard\": 0, \"partition\": " + partition + "}");
        await().untilAsserted(() -> assertThat(handled).containsExactly("a", "b", "a", "b", "b"));
        post("/eventsql/sought/mailer/seek", "{\"to\": \"2026-01-01T00:00:00Z\"}");
        await().untilAsserted(() -> assertThat(handled).hasSize(7));

        String body = "{\"to\": \"%s\", \"shard\": 0, \"partition\": " + partition + "}";
        assertSeekRejected("{}", "to must be earliest, latest, a time");
        assertSeekRejected("{\"to\": \"yesterday\"}", "to must be earliest, latest, a time");
        assertSeekRejected("{\"to\": \"latest\", \"shard\": 0, \"partition\": 0}", "to must be an offset");
        assertSeekRejected("{\"to\": \"1\", \"shard\": 0}", "to must be an offset, with shard and partition");
        assertSeekRejected(
                "{\"to\": \"0\", \"shard\": 0, \"partition\": 9}", "position.partition must be between 0 and 1");
        assertSeekRejected("{\"to\": \"0\", \"shard\": \"x\", \"partition\": 0}", "shard must be a number");
        assertSeekRejected(body.formatted(1_000_000), "position.offset must be between 0 (log start) and 2 (head)");
        assertSeekRejected("{\"to\": \"1000000\"}", "position.offset must be between 0 (log start)");
        assertThat(states("sought")).allSatisfy(state -> assertThat(state.lag()).isZero());
    }

    private static void assertSeekRejected(String json, String text) throws IOException, InterruptedException {
        assertProblem(post("/eventsql/sought/mailer/seek", json), 400, text);
    }

    @Test
    void endpoint_listsParkedEvents_andRedrives() throws Exception {
        newStream("failing");
        AtomicBoolean repaired = new AtomicBoolean();
        List<String> handled = new CopyOnWriteArrayList<>();
        eventSql.subscribe(
                ConsumerSpec.of("failing", "mailer")
                        .withFailurePolicy(FailurePolicy.PARK_KEY)
                        .withRetry(RetryPolicy.defaults().withMaxAttempts(1)),
                event -> {
                    if (!repaired.get()) {
                        throw new IllegalStateException("thrown by the test");
                    }
                    handled.add(event.text());
                });
        eventSql.publisher().publish("failing", Event.ofText("k", "secret"));
        await().untilAsserted(
                        () -> assertThat(get("/eventsql/failing/mailer/parked").body())
                                .contains("\"key\":\"k\"", "\"parked\":true", "thrown by the test")
                                .doesNotContain("secret", "value"));
        assertProblem(post("/eventsql/failing/mailer/redrive", "{\"shard\": 0}"), 400, "redrive of one event needs");

        repaired.set(true);
        assertThat(post("/eventsql/failing/mailer/redrive", "{}").body()).contains("\"events\":1");

        await().untilAsserted(() -> assertThat(handled).containsExactly("secret"));
        await().untilAsserted(() ->
                assertThat(get("/eventsql/failing/mailer/parked").body()).isEqualTo("{\"parkedEvents\":[]}"));
    }

    /** The examples are those of docs/observability.md. */
    @Test
    void endpoint_documentedCurlCommands_succeed() throws Exception {
        eventSql.createStream(StreamSpec.of("orders").withPartitions(4));
        eventSql.subscribe(ConsumerSpec.of("orders", "mailer"), event -> {});
        await().untilAsserted(() ->
                assertThat(eventSql.consumer("orders", "mailer").state()).hasSize(4));
        Pattern command = Pattern.compile("curl (?:-X POST -H \"\\$JSON\" -d '([^']*)' )?\"\\$EVENTSQL([^\"]*)\"");
        List<String> commands = Files.readString(Path.of("../../docs/observability.md"))
                .lines()
                .filter(line -> line.startsWith("curl "))
                .toList();
        assertThat(commands).hasSizeGreaterThan(5);
        for (String line : commands) {
            Matcher matcher = command.matcher(line);
            assertThat(matcher.matches()).as(line).isTrue();
            String path = "/eventsql" + matcher.group(2);
            HttpResponse<String> response = matcher.group(1) == null ? get(path) : post(path, matcher.group(1));
            assertThat(response.statusCode())
                    .as("%s: %s", line, response.body())
                    .isEqualTo(200);
        }
    }

    @Test
    void trace_isPropagatedThroughTheOutbox() throws Exception {
        EventSqlTemplate template = application.getBean(EventSqlTemplate.class);
        new TransactionTemplate(application.getBean(PlatformTransactionManager.class))
                .executeWithoutResult(status -> template.publish("traced", "k", "x"));

        Spans spans = application.getBean(Spans.class);
        await().untilAsserted(() -> assertThat(spans.named("process traced")).hasSize(1));
        SpanData send = spans.named("send traced").getFirst();
        SpanData process = spans.named("process traced").getFirst();
        assertThat(process.getTraceId()).isEqualTo(send.getTraceId());
        assertThat(process.getParentSpanId()).isEqualTo(send.getSpanId());
        assertThat(send.getKind()).isEqualTo(SpanKind.PRODUCER);
        assertThat(process.getKind()).isEqualTo(SpanKind.CONSUMER);
        assertThat(process.getLinks()).isEmpty();
        assertThat(process.getAttributes().asMap().toString())
                .contains("messaging.system=eventsql", "messaging.consumer.group.name=mailer");
        assertThat(get("/prometheus").body())
                .contains("eventsql_publish_seconds_count", "eventsql_process_seconds_count");
    }

    @Test
    void trace_ofAFailure_isInTheLog() {
        application.getBean(EventSqlTemplate.class).publish("failing_traced", "k", "x");

        Spans spans = application.getBean(Spans.class);
        await().untilAsserted(
                        () -> assertThat(spans.named("process failing_traced")).hasSize(1));
        assertThat(Failure.LOGGED_TRACE)
                .hasValue(spans.named("process failing_traced").getFirst().getTraceId());
    }

    @Test
    void trace_ofABatch_isLinkedToThoseOfItsEvents() throws Exception {
        newStream("linked");
        EventSqlObservations observations = application.getBean(EventSqlObservations.class);
        for (String text : List.of("a", "b")) {
            observations.publish(
                    "linked",
                    List.of(Event.ofText("k", text)),
                    events -> eventSql.publisher().publish("linked", events.getFirst()));
        }
        List<StoredEvent> events = new CopyOnWriteArrayList<>();
        eventSql.subscribeBatch(ConsumerSpec.of("linked", "mailer"), batch -> {
            observations.handleBatch("mailer", batch, () -> events.addAll(batch));
        });
        await().untilAsserted(() -> assertThat(events).hasSize(2));

        Spans spans = application.getBean(Spans.class);
        await().untilAsserted(() -> assertThat(spans.named("process linked")).hasSize(1));
        SpanData process = spans.named("process linked").getFirst();
        List<SpanData> sends = spans.named("send linked");
        assertThat(process.getLinks())
                .extracting(link -> link.getSpanContext().getSpanId())
                .containsExactlyElementsOf(
                        sends.stream().map(SpanData::getSpanId).toList());
        assertThat(sends).extracting(SpanData::getTraceId).doesNotContain(process.getTraceId());
        assertThat(process.getParentSpanContext().isValid()).isFalse();
    }
}
