package io.eventsql.app;

import static io.eventsql.app.AppHttpClient.json;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.app.benchmark.BenchmarkConsumer;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.benchmark.event.NumberSet;
import io.eventsql.benchmark.settings.Variables;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.ComponentScan;
import org.springframework.context.annotation.Import;
import tools.jackson.databind.JsonNode;

/** The app's HTTP server on a free port without databases. The test passes events to the handler. */
class HttpApiTest {
    @TempDir
    private static Path folder;

    private static ConfigurableApplicationContext app;
    private static AppHttpClient client;

    @BeforeAll
    static void start() throws Exception {
        app = new SpringApplicationBuilder(WithoutDatabases.class).run("--server.port=0", "--eventsql.enabled=false");
        client = new AppHttpClient(Integer.parseInt(Files.readString(portFile()).strip()));
    }

    @AfterAll
    static void stop() {
        client.close();
        app.close();
    }

    @Test
    void portFile_containsThePortAndNoTemporaryFileRemains() throws Exception {
        assertThat(Files.readString(portFile()).strip())
                .isEqualTo(app.getEnvironment().getProperty("local.server.port"));
        try (var files = Files.list(folder)) {
            assertThat(files).containsExactly(portFile());
        }
    }

    @Test
    void jvm_reportsItsOptionsAndCompilationTime() throws Exception {
        JsonNode jvm = json(client.send("GET", "/jvm"));

        assertThat(jvm.propertyNames()).containsExactlyInAnyOrder("options", "compilationMs");
        assertThat(jvm.get("options").isArray()).isTrue();
        assertThat(jvm.get("compilationMs").asLong()).isPositive();
    }

    @Test
    void run_received_isReportedCompletely() throws Exception {
        long intendedAtMicros = EpochMicros.now() - 2_000_000;
        handle(
                new BenchmarkEvent("aaaa0001", 4, false, 0, intendedAtMicros),
                new BenchmarkEvent("aaaa0001", 4, false, 1, intendedAtMicros),
                new BenchmarkEvent("aaaa0001", 4, false, 1, intendedAtMicros));

        HttpResponse<String> response = client.send("GET", "/benchmark-runs/aaaa0001");

        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.headers().firstValue("Content-Type")).hasValue("application/json");
        JsonNode report = json(response);
        assertThat(report.propertyNames()).containsExactlyInAnyOrder("run", "consumer", "runners");
        assertThat(report.get("run").asString()).isEqualTo("aaaa0001");
        assertThat(report.get("consumer").asString()).isEqualTo("counter");
        assertThat(report.get("runners")).hasSize(1);
        JsonNode runner = report.get("runners").get(0);
        assertThat(runner.propertyNames()).containsExactlyInAnyOrder("runner", "measured", "warmup");
        assertThat(runner.get("runner").asInt()).isEqualTo(4);

        JsonNode measured = runner.get("measured");
        assertThat(measured.propertyNames())
                .containsExactlyInAnyOrder(
                        "received",
                        "distinct",
                        "duplicates",
                        "highestNumber",
                        "orderViolations",
                        "handledBeforeIntended",
                        "firstHandledAtMicros",
                        "lastHandledAtMicros",
                        "endToEndMicrosHistogram");
        assertThat(measured.get("received").asLong()).isEqualTo(3);
        assertThat(measured.get("distinct").asLong()).isEqualTo(2);
        assertThat(measured.get("duplicates").asLong()).isEqualTo(1);
        assertThat(measured.get("highestNumber").asLong()).isEqualTo(1);
        assertThat(measured.get("firstHandledAtMicros").asLong()).isBetween(intendedAtMicros, EpochMicros.now());
        Histogram latencies = histogram(measured);
        assertThat(latencies.getTotalCount()).isEqualTo(3);
        assertThat(latencies.getMinValue()).isGreaterThan(1_990_000);

        JsonNode warmup = runner.get("warmup");
        assertThat(warmup.get("received").asLong()).isZero();
        assertThat(warmup.get("highestNumber").asLong()).isEqualTo(-1);
        assertThat(histogram(warmup).getTotalCount()).isZero();
    }

    @Test
    void run_withDetail_hasTheNumbersAndPartitions() throws Exception {
        handle(new BenchmarkEvent("aaaa0007", 0, false, 3, 0), new BenchmarkEvent("aaaa0007", 0, false, 70_000, 0));

        JsonNode runner =
                json(client.send("GET", "/benchmark-runs/aaaa0007?detail=true")).at("/runners/0");

        JsonNode detail = runner.at("/measured/detail");
        assertThat(detail.propertyNames()).containsExactlyInAnyOrder("numbers", "partitions", "endToEndMicrosBySecond");
        NumberSet numbers = NumberSet.decode(detail.get("numbers").asString());
        assertThat(numbers.size()).isEqualTo(2);
        assertThat(numbers.add(3)).isFalse();
        assertThat(numbers.add(70_000)).isFalse();
        assertThat(detail.get("partitions")).hasSize(1);
        assertThat(detail.get("partitions").get(0).asString()).isEqualTo("1/0");
        assertThat(detail.get("endToEndMicrosBySecond")).hasSize(1);
        assertThat(runner.at("/warmup/detail/partitions")).isEmpty();
        assertThat(runner.at("/warmup/detail/endToEndMicrosBySecond")).isEmpty();
    }

    @Test
    void run_unknown_is404() throws Exception {
        HttpResponse<String> response = client.send("GET", "/benchmark-runs/aaaa0002");

        assertThat(response.statusCode()).isEqualTo(404);
        assertThat(json(response).get("detail").asString()).isEqualTo("No events of run aaaa0002 received");
    }

    @Test
    void run_deleted_isForgottenWithItsBarriers() throws Exception {
        handle(new BenchmarkEvent("aaaa0003", 0, false, 0, 0));
        client.send("POST", "/benchmark-runs/aaaa0003/barriers/start?runner=0&runners=2");

        assertThat(client.send("DELETE", "/benchmark-runs/aaaa0003").statusCode())
                .isEqualTo(204);

        assertThat(client.send("GET", "/benchmark-runs/aaaa0003").statusCode()).isEqualTo(404);
        assertThat(json(client.send("POST", "/benchmark-runs/aaaa0003/barriers/start?runner=1&runners=2"))
                        .get("arrived")
                        .asInt())
                .isEqualTo(1);
        assertThat(client.send("DELETE", "/benchmark-runs/aaaa0003").statusCode())
                .as("again")
                .isEqualTo(204);
    }

    @Test
    void barrier_lastArrival_startsAll() throws Exception {
        String barrier = "/benchmark-runs/aaaa0004/barriers/start";

        HttpResponse<String> first = client.send("POST", barrier + "?runner=0&runners=2");
        assertThat(first.statusCode()).isEqualTo(200);
        assertThat(json(first).propertyNames())
                .containsExactlyInAnyOrder("arrived", "runners", "startAtMicros", "nowMicros");
        assertThat(json(first).get("arrived").asInt()).isEqualTo(1);
        assertThat(json(first).get("runners").asInt()).isEqualTo(2);
        assertThat(json(first).get("startAtMicros").isNull()).isTrue();

        long before = EpochMicros.now();
        JsonNode second = json(client.send("POST", barrier + "?runner=1&runners=2"));
        long startAtMicros = second.get("startAtMicros").asLong();
        assertThat(second.get("nowMicros").asLong()).isBetween(before, EpochMicros.now());
        assertThat(startAtMicros).isBetween(before + 500_000, EpochMicros.now() + 1_500_000);
        JsonNode again = json(client.send("POST", barrier + "?runner=0&runners=2"));
        assertThat(again.get("startAtMicros").asLong()).isEqualTo(startAtMicros);
    }

    @Test
    void barrier_otherNumberOfRunners_is409() throws Exception {
        client.send("POST", "/benchmark-runs/aaaa0005/barriers/start?runner=0&runners=2");

        HttpResponse<String> response =
                client.send("POST", "/benchmark-runs/aaaa0005/barriers/start?runner=1&runners=3");

        assertThat(response.statusCode()).isEqualTo(409);
        assertThat(json(response).get("detail").asString()).contains("waits for 2 runners, not for 3");
    }

    @ParameterizedTest
    @CsvSource({
        "GET, /benchmark-runs/AAAA0001, run must be",
        "GET, /benchmark-runs/aaaa00011, run must be",
        "GET, /benchmark-runs/aaaa0001?detail=perhaps, detail",
        "DELETE, /benchmark-runs/x, run must be",
        "POST, /benchmark-runs/x/barriers/start?runner=0&runners=1, run must be",
        "POST, /benchmark-runs/aaaa0001/barriers/a.b?runner=0&runners=1, name must be",
        "POST, /benchmark-runs/aaaa0001/barriers/start?runner=1000&runners=1, runner must be between 0 and 999",
        "POST, /benchmark-runs/aaaa0001/barriers/start?runner=0&runners=0, runners must be between 1 and 1000",
        "POST, /benchmark-runs/aaaa0001/barriers/start?runner=0, runners",
        "POST, /benchmark-runs/aaaa0001/barriers/start?runner=a&runners=1, runner",
    })
    void request_invalid_is400AndNamesTheParameter(String method, String path, String problem) throws Exception {
        HttpResponse<String> response = client.send(method, path);

        assertThat(response.statusCode()).isEqualTo(400);
        assertThat(json(response).get("detail").asString()).contains(problem);
    }

    @Test
    void prometheus_showsForeignEvents() throws Exception {
        HttpResponse<String> response = client.send("GET", "/actuator/prometheus");

        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.body()).contains("eventsql_app_events_foreign_total{stream=\"counted\"} 0.0");
    }

    private static void handle(BenchmarkEvent... events) {
        app.getBean(BenchmarkConsumer.class)
                .handle(List.of(events).stream()
                        .map(event -> new StoredEvent(
                                new EventPosition("counted", 1, 0, event.number()),
                                null,
                                event.encode(),
                                Map.of(),
                                Instant.EPOCH))
                        .toList());
    }

    private static Histogram histogram(JsonNode phase) throws Exception {
        byte[] compressed =
                Base64.getDecoder().decode(phase.get("endToEndMicrosHistogram").asString());
        return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(compressed), 0);
    }

    private static Path portFile() {
        return folder.resolve("app.port");
    }

    /** Without {@code @Configuration}, so that the component scan of the app does not find it. */
    @EnableAutoConfiguration(excludeName = "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration")
    @ComponentScan("io.eventsql.app.benchmark")
    @Import(PortFile.class)
    static class WithoutDatabases {

        @Bean
        AppSettings appSettings() {
            Map<String, String> environment = Map.of(
                    "DB0_HOST", "not-used.invalid",
                    "DB0_PASSWORD", "not-used",
                    "STREAM", "counted",
                    "CONSUMER", "counter",
                    "PORT_FILE", portFile().toString());
            return AppSettings.read(new Variables(environment::get));
        }
    }
}
