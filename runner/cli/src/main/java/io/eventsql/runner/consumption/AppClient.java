package io.eventsql.runner.consumption;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** Asks the consumer app over HTTP. Thread-safe. */
public final class AppClient implements AutoCloseable {
    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final int OK = 200;
    private static final int NOT_FOUND = 404;

    /**
     * The app's answer at a barrier.
     *
     * @param arrived how many runners are there
     * @param runners how many it waits for
     * @param startAtMicros when all start, epoch microseconds; {@code null} until all are there
     * @param nowMicros the app's clock, epoch microseconds
     */
    public record Barrier(
            int arrived, int runners, @Nullable Long startAtMicros, long nowMicros) {}

    private final URI app;
    private final HttpClient http = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(TIMEOUT)
            .build();
    private final JsonMapper json = JsonMapper.builder()
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .build();

    /** @param app such as {@code http://localhost:8080} */
    public AppClient(URI app) {
        this.app = app;
    }

    /** Where the app is. */
    public URI uri() {
        return app;
    }

    /**
     * What the app has seen of a run; empty when it has seen nothing of it.
     *
     * @param detailed whether with what unites it with what others have seen
     * @throws IOException if the app does not answer, or not as expected
     */
    public Optional<RunReport> run(String run, boolean detailed) throws IOException {
        HttpResponse<String> response = send(request("/benchmark-runs/" + run + (detailed ? "?detail=true" : ""))
                .GET()
                .build());
        if (response.statusCode() == NOT_FOUND) {
            return Optional.empty();
        }
        return Optional.of(read(response, RunReport.class));
    }

    /**
     * Says that this runner is at a barrier.
     *
     * @throws IOException if the app does not answer, or not as expected
     */
    public Barrier arrive(String run, String barrier, int runner, int runners) throws IOException {
        String path = "/benchmark-runs/" + run + "/barriers/" + barrier + "?runner=" + runner + "&runners=" + runners;
        HttpRequest request =
                request(path).POST(HttpRequest.BodyPublishers.noBody()).build();
        return read(send(request), Barrier.class);
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(app.resolve(path)).timeout(TIMEOUT).header("Accept", "application/json");
    }

    private HttpResponse<String> send(HttpRequest request) throws IOException {
        try {
            return http.send(request, HttpResponse.BodyHandlers.ofString(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new IOException("The app does not answer at " + request.uri() + ": " + e, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("Interrupted while asking " + request.uri(), e);
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
            throw new IOException("The app's answer to " + response.uri() + " is not understood: " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        http.close();
    }
}
