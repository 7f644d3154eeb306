package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

/** Runs the parts on appends, reads, retention and compaction with tiny numbers: what is measured, not how fast it is. */
class LimitsRunIT extends LimitsFixture {
    @Test
    void limits_append_copiesAndPublishesEachWay() throws IOException, SQLException {
        JsonNode result = limits("parts=[append]", "rounds=1", "round_seconds=0.1");

        assertThat(value(result, "append", "", "event_bytes_mean", "value")).isBetween(220.0, 240.0);
        assertThat(value(result, "append", "", "copy_events_per_commit", "value"))
                .isEqualTo(5_000);
        assertThat(rows(result, "append", "rates"))
                .containsExactly(
                        "COPY BINARY, 1 connection",
                        "COPY BINARY, 2 connections",
                        "publishAsync, 4 callers",
                        "publishAll of 100, 4 callers",
                        "publish, 50 callers",
                        "publishAsync, 4 callers, end to end",
                        "publishAll of 100, 4 callers, end to end",
                        "publish, 50 callers, end to end",
                        "bare group commit, 1 connection",
                        "bare group commit, 2 connections",
                        "bare group commit, batches of 100, 1 connection",
                        "bare group commit, batches of 100, 2 connections");
        for (String row : rows(result, "append", "rates")) {
            JsonNode rate = figure(result, "append", "rates", row, "events_per_second");
            assertThat(rate.get("value").asDouble()).as(row).isPositive();
            assertThat(rate.get("rounds").size()).isEqualTo(1);
        }
        JsonNode ratio = figure(result, "append", "rates", "publishAsync, 4 callers", "vs COPY BINARY, 1 connection");
        assertThat(ratio.get("rounds").get(0).asDouble())
                .isEqualTo(round(result, "publishAsync, 4 callers") / round(result, "COPY BINARY, 1 connection"));
        JsonNode database = result.get("databases").get(0);
        assertThat(database.get("fsync").asString()).isEqualTo("on");
        assertThat(database.get("synchronous_commit").asString()).isEqualTo("on");
        assertThat(database.get("version").asString()).isNotEmpty();
        assertThat(result.get("machine").get("java_version").asString()).isNotEmpty();
        assertThat(result.get("machine").get("cpus").asInt()).isPositive();
        assertThat(result.get("git_commit").asString()).isEqualTo("c0ffee");
        assertThat(result.get("command").asString()).isEqualTo("this test");
        assertThat(result.get("parts").size()).isEqualTo(1);
        assertThat(query("SELECT count(*) FROM eventsql.stream WHERE name LIKE 'limits_publish_%'"))
                .isEqualTo("0");
    }

    private static double round(JsonNode result, String row) {
        return figure(result, "append", "rates", row, "events_per_second")
                .get("rounds")
                .get(0)
                .asDouble();
    }

    @Test
    void limits_read_runsWithoutStatisticsThenWithThem() throws IOException {
        JsonNode result = limits("parts=[read]", "rounds=1", "round_seconds=0.05", "read_events=25000");

        List<String> segments = rows(result, "read", "segment");
        assertThat(value(result, "read", "segment", segments.get(0), "reltuples"))
                .isEqualTo(-1);
        assertThat(value(result, "read", "segment", segments.get(1), "reltuples"))
                .isEqualTo(25_000);
        assertThat(rows(result, "read", "pages"))
                .containsExactly("pages of 10", "pages of 100", "pages of 1000", "pages of 5000", "pages of 10000");
        for (String page : rows(result, "read", "pages")) {
            assertThat(value(result, "read", "pages", page, "never_analyzed")).isPositive();
            assertThat(value(result, "read", "pages", page, "analyzed")).isPositive();
        }
        assertThat(value(result, "read", "pages", "pages of 10", "events_per_call"))
                .isEqualTo(10);
        assertThat(value(result, "read", "slowest page size of at least 1000 / fastest", "analyzed", "value"))
                .isBetween(0.0, 1.0);
        assertThat(rows(result, "read", "consumers")).hasSize(3);
    }

    @Test
    void limits_large_comparesStreamsWithTheGivenNumbersOfEvents() throws IOException, SQLException {
        JsonNode result = limits("parts=[large]", "large_events=100000", "rounds=1", "round_seconds=0.1");

        double large = value(result, "large", "streams", "large", "events");
        assertThat(large).isGreaterThan(100_000);
        assertThat(value(result, "large", "streams", "small", "events"))
                .isGreaterThan(50_000)
                .isLessThan(large);
        assertThat(value(result, "large", "streams", "large", "append_locks")).isPositive();
        assertThat(value(result, "large", "large / small", "publish", "value")).isPositive();
        assertThat(value(result, "large", "large / small", "end to end", "value"))
                .isPositive();
        assertThat(query("SELECT bool_and(n = h.next_offset - h.log_start) FROM eventsql.partition_head h"
                        + " JOIN (SELECT partition, count(*) AS n FROM eventsql.events_limits_large_"
                        + runId(result) + " GROUP BY partition) e USING (partition)"
                        + " WHERE h.stream = 'limits_large_" + runId(result) + "'"))
                .isEqualTo("t");
    }

    @Test
    void limits_retention_countsWhatIsLeft() throws IOException {
        JsonNode result = limits(
                "parts=[retention]",
                "rounds=1",
                "retention_seconds=1",
                "warmup_seconds=0",
                "burst_seconds=1",
                "burst_rate=10000");

        assertThat(rows(result, "retention", "readers"))
                .containsExactly("no reader", "idle reader of another segment", "idle reader of the expiring segment");
        assertThat(value(result, "retention", "", "missing_events", "value")).isZero();
        assertThat(value(result, "retention", "burst", "into segments of 10,000 events", "events"))
                .isEqualTo(10_000);
    }

    @Test
    void limits_compaction_showsSizeAndRateOverTime() throws IOException {
        JsonNode result = limits("parts=[compaction]", "compaction_seconds=3", "compaction_rate=2000");

        assertThat(rows(result, "compaction", "interval")).hasSize(20);
        double handled = 0;
        for (String interval : rows(result, "compaction", "interval")) {
            assertThat(value(result, "compaction", "interval", interval, "published_events"))
                    .isEqualTo(300);
            assertThat(value(result, "compaction", "interval", interval, "bytes"))
                    .isPositive();
            handled += value(result, "compaction", "interval", interval, "handled_events");
        }
        assertThat(handled).isBetween(1_000.0, 6_000.0);
    }

    @Test
    void limits_severalDatabases_areSkipped() {
        int status = run(
                Map.of("DB0_HOST", "a", "DB0_PASSWORD", "p", "DB1_HOST", "b", "DB1_PASSWORD", "p"),
                "--set=limits.parts=[append]");

        assertThat(status).isEqualTo(2);
        assertThat(err.toString()).contains("Skipping run append: requires 1 databases, but 2 are configured");
    }
}
