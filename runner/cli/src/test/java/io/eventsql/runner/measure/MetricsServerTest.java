package io.eventsql.runner.measure;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class MetricsServerTest {
    private static final Path DASHBOARD = Path.of("../../monitoring/grafana/dashboards/eventsql.json");

    @Test
    void scrape_runInProgress_hasItsCounters() throws Exception {
        RunSeries series = new RunSeries(0);
        series.start(0);
        series.recordSent(1, 2, 5);
        series.recordMissed(3, 4);
        series.recordAcknowledged(5, 1, 3);
        series.recordFailed(6, 2);

        assertThat(scrape(series))
                .contains(
                        "# TYPE eventsql_runner_published_events_total counter\n",
                        "eventsql_runner_offered_events_total{runner=\"2\"} 9\n",
                        "eventsql_runner_published_events_total{runner=\"2\"} 3\n",
                        "eventsql_runner_failed_events_total{runner=\"2\"} 2\n",
                        "eventsql_runner_missed_events_total{runner=\"2\"} 4\n",
                        "eventsql_runner_heap_bytes{runner=\"2\"} ");
    }

    /** A panel stays empty where a name is wrong. */
    @Test
    void dashboard_asksForWhatAScrapeHas() throws Exception {
        String scrape = scrape(new RunSeries(0));
        Set<String> asked = Pattern.compile("eventsql_runner_\\w+")
                .matcher(Files.readString(DASHBOARD))
                .results()
                .map(MatchResult::group)
                .collect(Collectors.toCollection(TreeSet::new));

        assertThat(asked)
                .hasSizeGreaterThan(2)
                .allSatisfy(name -> assertThat(scrape).contains("\n" + name + "{runner="));
    }

    private static String scrape(RunSeries series) throws Exception {
        try (MetricsServer server = MetricsServer.start(0, series, 2);
                HttpClient client = HttpClient.newHttpClient()) {
            URI uri = URI.create("http://localhost:" + server.port() + "/metrics");
            return client.send(HttpRequest.newBuilder(uri).build(), BodyHandlers.ofString())
                    .body();
        }
    }
}
