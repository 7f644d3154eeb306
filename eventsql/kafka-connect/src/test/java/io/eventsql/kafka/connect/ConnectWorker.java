package io.eventsql.kafka.connect;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A distributed Connect worker, a process of its own with exactly-once support, that can be killed and started again. */
final class ConnectWorker implements AutoCloseable {
    private static final Duration START_TIMEOUT = Duration.ofMinutes(2);
    private static final String MAIN_CLASS = "org.apache.kafka.connect.cli.ConnectDistributed";

    private final HttpClient http = HttpClient.newHttpClient();
    private final String libraries;
    private final Path properties;
    private final Path log;
    private final int port;
    private Process process;

    /** @param libraries the folder with the jars of Connect */
    ConnectWorker(String bootstrapServers, String libraries, Path folder) throws IOException, ClassNotFoundException {
        this.libraries = libraries;
        this.properties = folder.resolve("worker.properties");
        this.log = folder.resolve("worker.log");
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        String group = "connect-" + ProcessHandle.current().pid();
        Files.write(
                properties,
                List.of(
                        "bootstrap.servers=" + bootstrapServers,
                        "group.id=" + group,
                        "key.converter=org.apache.kafka.connect.storage.StringConverter",
                        "value.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
                        "exactly.once.source.support=enabled",
                        "config.providers=file",
                        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider",
                        "config.storage.topic=" + group + "-config",
                        "config.storage.replication.factor=1",
                        "offset.storage.topic=" + group + "-offset",
                        "offset.storage.replication.factor=1",
                        "offset.storage.partitions=1",
                        "status.storage.topic=" + group + "-status",
                        "status.storage.replication.factor=1",
                        "status.storage.partitions=1",
                        // The shortest that brokers allow by default: so long a killed worker is missed.
                        "session.timeout.ms=6000",
                        "heartbeat.interval.ms=1000",
                        "scheduled.rebalance.max.delay.ms=0",
                        "listeners=http://127.0.0.1:" + port,
                        "plugin.discovery=service_load",
                        "plugin.path=" + PluginFolder.create(folder)));
        start();
    }

    void start() throws IOException {
        process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx512m",
                        "-XX:+UseSerialGC",
                        "-cp",
                        libraries + "/*",
                        MAIN_CLASS,
                        properties.toString())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .start();
        await().atMost(START_TIMEOUT)
                .ignoreExceptionsInstanceOf(IOException.class)
                .until(() -> {
                    assertThat(process.isAlive())
                            .as("worker; its log is %s", Files.readString(log))
                            .isTrue();
                    return get("/connectors").statusCode() == 200;
                });
    }

    /** As {@code kill -9}. */
    void kill() throws InterruptedException {
        process.destroyForcibly();
        assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
    }

    HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return http.send(request(path).GET().build(), BodyHandlers.ofString());
    }

    /** Sends a request, again while the worker is joining its group, and asserts that it succeeds. */
    String send(String method, String path, String body) {
        return await().atMost(START_TIMEOUT)
                .until(
                        () -> http.send(
                                request(path)
                                        .method(method, BodyPublishers.ofString(body))
                                        .build(),
                                BodyHandlers.ofString()),
                        answer -> {
                            assertThat(answer.statusCode())
                                    .as("%s %s: %s", method, path, answer.body())
                                    .isIn(200, 201, 202, 204, 409, 500);
                            return answer.statusCode() < 300;
                        })
                .body();
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                .timeout(Duration.ofSeconds(30))
                .header("Content-Type", "application/json");
    }

    @Override
    public void close() throws Exception {
        process.destroy();
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            kill();
        }
    }
}
