package io.eventsql.runner.consumption;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** HTTP client of the consumer app. Thread-safe. */
public final class AppClient implements AutoCloseable {
    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final int OK = 200;
    private static final int NOT_FOUND = 404;

    /**
     * The state of a barrier.
     *
     * @param arrived the number of runners that have arrived
     * @param runners the number of expected runners
     * @param startAtMicros the common start time in epoch microseconds; {@code null} until all runners have arrived
     * @param nowMicros the app's current time in epoch microseconds
     */
    public record Barrier(
            int arrived, int runners, @Nullable Long startAtMicros, long nowMicros) {}

    /**
     * The app's JVM.
     *
     * @param options the options of its command line; {@code null} if unknown
     * @param compilationMs the time for which its compilers have been active, in milliseconds; {@code null} if unknown
     */
    public record Jvm(
            @Nullable List<String> options, @Nullable Long compilationMs) {}

    private final URI app;
    private final HttpClient http = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(TIMEOUT)
            .build();
    private final JsonMapper json = JsonMapper.builder()
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .build();

    /** @param app the base URL, such as {@code http://localhost:8080} */
    public AppClient(URI app) {
        this.app = app;
    }

    /** Returns the base URL of the app. */
    public URI uri() {
        return app;
    }

    /**
     * Returns the app's report of a run; empty if it has received none of its events.
     *
     * @param detailed whether to include the detail needed to merge reports of several members
     * @throws IOException if the app does not respond or responds unexpectedly
     */
    public Optional<RunReport> report(String run, boolean detailed) throws IOException {
        HttpResponse<String> response = send(request("/benchmark-runs/" + run + (detailed ? "?detail=true" : ""))
                .GET()
                .build());
        if (response.statusCode() == NOT_FOUND) {
            return Optional.empty();
        }
        return Optional.of(read(response, RunReport.class));
    }

    /**
     * Reports that this runner has arrived at a barrier.
     *
     * @throws IOException if the app does not respond or responds unexpectedly
     */
    public Barrier arrive(String run, String barrier, int runner, int runners) throws IOException {
        String path = "/benchmark-runs/" + run + "/barriers/" + barrier + "?runner=" + runner + "&runners=" + runners;
        HttpRequest request =
                request(path).POST(HttpRequest.BodyPublishers.noBody()).build();
        return read(send(request), Barrier.class);
    }

    /**
     * Returns the options and the compilation time of the app's JVM.
     *
     * @throws IOException if the app does not respond or responds unexpectedly
     */
    public Jvm jvm() throws IOException {
        return read(send(request("/jvm").GET().build()), Jvm.class);
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(app.resolve(path)).timeout(TIMEOUT).header("Accept", "application/json");
    }

    private HttpResponse<String> send(HttpRequest request) throws IOException {
        try {
            return http.send(request, HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new IOException("No response from the app at " + request.uri() + ": " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("Interrupted while requesting " + request.uri(), e);
        }
    }

    private <T> T read(HttpResponse<String> response, Class<T> type) throws IOException {
        if (response.statusCode() != OK) {
            throw new IOException("The app answered " + response.uri() + " with status " + response.statusCode() + ": "
                    + response.body());
        }
        try {
            return json.readValue(response.body(), type);
        } catch (JacksonException e) {
            throw new IOException("Invalid response of the app to " + response.uri() + ": " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        http.close();
    }
}
