package io.eventsql.runner.measure;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;

/**
 * Serves the counters of a run at {@code /metrics} in the text format of Prometheus while it lasts. Only counters: rates
 * and aggregates are the reader's. Thread-safe.
 */
public final class MetricsServer implements AutoCloseable {
    private final HttpServer server;

    /**
     * Starts the server.
     *
     * @param port the TCP port on all addresses; 0 for a free one
     * @throws IOException if the port is in use
     */
    public static MetricsServer start(int port, RunSeries series, int runner) throws IOException {
        return new MetricsServer(HttpServer.create(new InetSocketAddress(port), 0), series, runner);
    }

    private MetricsServer(HttpServer server, RunSeries series, int runner) {
        this.server = server;
        server.createContext("/metrics", exchange -> {
            byte[] body = text(series, runner).getBytes(UTF_8);
            exchange.getResponseHeaders().add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
            exchange.sendResponseHeaders(200, body.length);
            try (exchange) {
                exchange.getResponseBody().write(body);
            }
        });
        server.start();
    }

    public int port() {
        return server.getAddress().getPort();
    }

    private static String text(RunSeries series, int runner) {
        RunSeries.Totals totals = series.totals();
        long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        return counter("offered_events", "Events that were due", runner, totals.offered())
                + counter("published_events", "Events acknowledged as committed", runner, totals.published())
                + counter("failed_events", "Events of failed calls", runner, totals.failed())
                + counter("missed_events", "Events that were not sent in time", runner, totals.missed())
                + sample("heap_bytes", "gauge", "Heap in use", runner, heap);
    }

    private static String counter(String name, String help, int runner, long value) {
        return sample(name + "_total", "counter", help, runner, value);
    }

    private static String sample(String name, String type, String help, int runner, long value) {
        String metric = "eventsql_runner_" + name;
        return "# HELP %1$s %2$s\n# TYPE %1$s %3$s\n%1$s{runner=\"%4$d\"} %5$d\n"
                .formatted(metric, help, type, runner, value);
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
