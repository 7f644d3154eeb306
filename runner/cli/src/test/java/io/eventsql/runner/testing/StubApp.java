package io.eventsql.runner.testing;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;

/** A stub of the benchmark app: returns configured HTTP responses and records requests. */
public final class StubApp implements AutoCloseable {

    /** An HTTP response. */
    public record Answer(int status, String body) {}

    private final HttpServer server;
    public final List<String> requests = new CopyOnWriteArrayList<>();

    private StubApp(HttpServer server) {
        this.server = server;
    }

    /** @param answers the response to a request such as {@code GET /benchmark-runs/ab12cd34} */
    public static StubApp start(Function<String, Answer> answers) {
        try {
            HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            StubApp app = new StubApp(server);
            server.createContext("/", exchange -> {
                String request = exchange.getRequestMethod() + " " + exchange.getRequestURI();
                app.requests.add(request);
                Answer answer = answers.apply(request);
                byte[] body = answer.body.getBytes(StandardCharsets.UTF_8);
                exchange.sendResponseHeaders(answer.status, body.length == 0 ? -1 : body.length);
                exchange.getResponseBody().write(body);
                exchange.close();
            });
            server.start();
            return app;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public URI uri() {
        return URI.create("http://localhost:" + server.getAddress().getPort());
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
