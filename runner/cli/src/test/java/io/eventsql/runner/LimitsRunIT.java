package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.eventsdb.EventsDb;
import io.eventsql.runner.testing.ResultSchema;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Runs each benchmark with tiny numbers, to check what is measured, not how fast it is. */
@Timeout(120)
class LimitsRunIT {
    private static EventsDb server;

    @TempDir
    private Path folder;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @BeforeAll
    static void startServer() throws SQLException {
        server = EventsDb.start();
        try (var connection = server.adminDataSource().getConnection();
                var statement = connection.createStatement()) {
            statement.execute("GRANT pg_monitor, pg_checkpoint TO eventsql");
        }
    }

    @AfterAll
    static void stopServer() {
        server.close();
    }

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
        JsonNode result = limits("parts=[large]", "large_events=400000", "rounds=2", "round_seconds=0.1");

        assertThat(value(result, "large", "streams", "large", "events")).isGreaterThan(400_000);
        assertThat(value(result, "large", "streams", "small", "events")).isBetween(200_001.0, 399_999.0);
        assertThat(value(result, "large", "streams", "large", "append_locks")).isPositive();
        assertThat(figure(result, "large", "large / small", "publish", "value")
                        .get("low")
                        .asDouble())
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
        JsonNode result = limits("parts=[compaction]", "compaction_seconds=6", "compaction_rate=1000");

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
    void limits_cost_countsEachLoadWithAndWithoutACheckpoint() throws IOException {
        JsonNode result = limits("parts=[cost]", "rounds=1", "cost_seconds=1", "warmup_seconds=1");

        assertThat(tables(result, "cost"))
                .containsExactly(
                        "1,000/s",
                        "2,000/s, 2 members",
                        "10,000/s",
                        "publish, 50 callers",
                        "publishAll of 100, 4 callers",
                        "publishAsync, 4 callers");
        assertThat(part(result, "cost").get("settings").get("fsync").asString()).isEqualTo("on");
        for (String load : tables(result, "cost")) {
            for (String name : rows(result, "cost", load)) {
                if (!name.matches("page_images.*|checkpoints.*")) {
                    assertThat(value(result, "cost", load, name, "steady"))
                            .as(name)
                            .isPositive();
                }
            }
            // More than the event itself, but each backend reports only once per second.
            assertThat(value(result, "cost", load, "wal_bytes_per_event", "steady"))
                    .as(load)
                    .isGreaterThan(100);
            assertThat(value(result, "cost", load, "checkpoints_per_interval", "with a checkpoint"))
                    .isGreaterThanOrEqualTo(1);
            assertThat(value(result, "cost", load, "page_images_per_1000_events", "with a checkpoint"))
                    .isPositive();
            assertThat(value(result, "cost", load, "server_cores", "steady"))
                    .isBetween(0.0, (double) Runtime.getRuntime().availableProcessors());
        }
    }

    @Test
    void limits_fanout_handlesEachEventTenTimes() throws IOException {
        JsonNode result = limits("parts=[fanout]", "rounds=1", "cost_seconds=2", "warmup_seconds=1");

        String ratios = "1,000/s, 10 consumers / 1,000/s, 1 consumer";
        assertThat(value(result, "fanout", ratios, "handled_per_event", "steady"))
                .isBetween(8.0, 12.0);
        assertThat(value(result, "fanout", ratios, "blocks_hit_per_event", "steady"))
                .isPositive();
    }

    @Test
    void limits_tail_attributesTheSlowestEventsOfEachRate() throws IOException {
        JsonNode result = limits("parts=[tail]", "tail_seconds=1", "warmup_seconds=1");

        assertThat(rows(result, "tail", "rates")).containsExactly("1,000/s", "10,000/s", "25,000/s");
        for (String rate : rows(result, "tail", "rates")) {
            assertThat(value(result, "tail", "rates", rate, "slow_from_ms"))
                    .isBetween(0.0, value(result, "tail", "rates", rate, "max_ms"));
            assertThat(value(result, "tail", "rates", rate, "of_s")).isGreaterThan(0.5);
            assertThat(value(result, "tail", "rates", rate, "sampler")).isBetween(0.0, 10.0);
            assertThat(rows(result, "tail", rate + ", of the time")).contains("CPU");
            for (String seen : rows(result, "tail", rate + ", of the time")) {
                for (String share : List.of("slow events", "slow time", "other time")) {
                    assertThat(value(result, "tail", rate + ", of the time", seen, share))
                            .isBetween(0.0, 100.0);
                }
            }
        }
    }

    @Test
    void limits_scheduled_comparesRoundsAndFindsEachDueEventOnce() throws IOException {
        JsonNode result = limits(
                "parts=[scheduled]", "rounds=1", "round_seconds=0.2", "scheduled_events=1000", "scheduled_seconds=1");

        assertThat(value(result, "scheduled", "rounds", "scheduled / none", "events_per_second"))
                .isPositive();
        assertThat(value(result, "scheduled", "due events", "scheduled", "value"))
                .isEqualTo(1_000);
        assertThat(value(result, "scheduled", "due events", "distinct", "value"))
                .isEqualTo(1_000);
        assertThat(value(result, "scheduled", "due events", "early", "value")).isZero();
    }

    @Test
    void limits_snapshot_isHeldOnlyInTheRunsWithIt() throws IOException {
        JsonNode result = limits("parts=[snapshot]", "snapshot_seconds=1", "snapshot_rate=200", "warmup_seconds=0");

        for (String stream : List.of("1 partition", "10 partitions")) {
            for (String kind : List.of("without", "with")) {
                for (int tenth = 1; tenth <= 10; tenth++) {
                    assertThat(value(result, "snapshot", stream, "tenth " + tenth, kind + "_events"))
                            .isEqualTo(20);
                }
                assertThat(value(result, "snapshot", stream, "all", kind + "_p99_ms"))
                        .isPositive();
                assertThat(value(result, "snapshot", stream + ", ratios", "p99, last tenth / first tenth", kind))
                        .isPositive();
            }
            JsonNode ages = row(result, "snapshot", stream, "snapshot_age_transactions");
            assertThat(ages.has("without")).isFalse();
            assertThat(ages.get("with").get("value").asDouble()).isPositive();
        }
        assertThat(part(result, "snapshot").get("histograms").size()).isEqualTo(40);
    }

    @Test
    void limits_handlers_handlesEachEventOnceInTheOrderOfItsKey() throws IOException {
        JsonNode result = limits(
                "parts=[handlers]", "handlers_events=3000", "handlers_sequential_events=20", "handlers_concurrency=20");

        assertThat(value(result, "handlers", "", "handler_ms", "value")).isEqualTo(10);
        assertThat(value(result, "handlers", "handlers", "sequential", "events"))
                .isEqualTo(20);
        assertThat(value(result, "handlers", "handlers", "sequential", "events_per_second"))
                .isBetween(0.0, 101.0);
        assertThat(value(result, "handlers", "handlers", "20 keys in parallel", "events"))
                .isEqualTo(3_000);
        assertThat(value(result, "handlers", "handlers", "20 keys in parallel", "events_per_second"))
                .isBetween(0.0, 2_001.0);
        for (String run : rows(result, "handlers", "handlers")) {
            for (String wrong : List.of("lost", "duplicated", "out_of_order")) {
                assertThat(value(result, "handlers", "handlers", run, wrong)).isZero();
            }
        }
    }

    @Test
    void limits_transactions_writesTheSameBusinessRowsWithAPlainRowAndWithAPublish() throws Exception {
        JsonNode result = limits("parts=[transactions]", "rounds=1", "round_seconds=0.2");

        assertThat(rows(result, "transactions", "rates"))
                .containsExactly(
                        "with a plain row, 8 callers", "with a publish, 8 callers", "relayed, 4 callers of 100");
        for (String way : rows(result, "transactions", "rates")) {
            assertThat(value(result, "transactions", "rates", way, "events_per_second"))
                    .as(way)
                    .isPositive();
        }
        // Two turns of each way, of which only the first one writes plain rows.
        List<Boolean> onlyBusinessRows = new ArrayList<>();
        for (String run : query("SELECT string_agg(substr(relname, 14), ',') FROM pg_class"
                        + " WHERE relname LIKE 'limits_order_%' AND relkind = 'r'")
                .split(",", -1)) {
            long business = queryLong("SELECT count(*) FROM limits_order_" + run);
            long plain = queryLong("SELECT count(*) FROM limits_plain_outbox_" + run);
            assertThat(business).isPositive();
            assertThat(plain).isIn(0L, business);
            onlyBusinessRows.add(plain == 0);
        }
        assertThat(onlyBusinessRows).containsExactlyInAnyOrder(false, false, true, true, true, true);
    }

    @Test
    void limits_outbox_movesEachCommittedEventWithAndWithoutAnOldSnapshot() throws IOException {
        JsonNode result = limits("parts=[outbox]", "outbox_seconds=2", "outbox_rate=100", "warmup_seconds=1");

        for (String kind : List.of("without", "with")) {
            assertThat(value(result, "outbox", "runs", "direct_events", kind)).isEqualTo(200);
            assertThat(value(result, "outbox", "runs", "committed_events", kind))
                    .isEqualTo(300);
            assertThat(value(result, "outbox", "runs", "stored_events", kind)).isEqualTo(300);
            assertThat(value(result, "outbox", "runs", "transactions_p50_ms", kind))
                    .isPositive();
            for (int tenth = 1; tenth <= 10; tenth++) {
                assertThat(value(result, "outbox", "tenths", "tenth " + tenth, kind + "_bytes"))
                        .isPositive();
            }
        }
        JsonNode ages = row(result, "outbox", "runs", "snapshot_age_transactions");
        assertThat(ages.has("without")).isFalse();
        assertThat(ages.get("with").get("value").asDouble()).isPositive();
    }

    @Test
    void limits_severalDatabases_areSkipped() {
        int status = run(
                Map.of("DB0_HOST", "a", "DB0_PASSWORD", "p", "DB1_HOST", "b", "DB1_PASSWORD", "p"),
                "--set=limits.parts=[append]");

        assertThat(status).isEqualTo(2);
        assertThat(err.toString()).contains("Skipping run append: requires 1 databases, but 2 are configured");
    }

    /** Runs a part with numbers and checks that it prints and writes its report. */
    private JsonNode limits(String... numbers) throws IOException {
        int status = run(
                Map.of("DB_URLS", server.jdbcUrl(), "DB_USER", server.username(), "DB_PASSWORD", server.password()),
                Stream.of(numbers).map(number -> "--set=limits." + number).toArray(String[]::new));
        assertThat(status).as(err.toString()).isZero();
        Path result = folder.resolve("append/result.json");
        assertThat(out.toString()).contains(Files.readString(folder.resolve("append/report.txt")));
        ResultSchema.requireValid(result);
        return JsonMapper.shared().readTree(Files.readString(result));
    }

    /** Runs the first run of the workload, with other parts. */
    private int run(Map<String, String> environment, String... settings) {
        List<String> arguments = new ArrayList<>(List.of("run", "limits", "--workloads=../workloads", "--only=append"));
        arguments.addAll(List.of(settings));
        arguments.addAll(List.of("--out=" + folder, "--git-commit=c0ffee", "--command=this test"));
        return Runner.commandLine(environment)
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments.toArray(String[]::new));
    }

    private static String runId(JsonNode result) {
        return result.get("run_id").asString();
    }

    private static JsonNode named(JsonNode array, String name) {
        for (JsonNode element : array) {
            if (element.get("name").asString().equals(name)) {
                return element;
            }
        }
        throw new AssertionError(name + " is not in " + names(array));
    }

    private static List<String> names(JsonNode array) {
        List<String> names = new ArrayList<>();
        array.forEach(element -> names.add(element.get("name").asString()));
        return names;
    }

    private static JsonNode part(JsonNode result, String part) {
        return named(result.get("parts"), part);
    }

    private static List<String> tables(JsonNode result, String part) {
        return names(part(result, part).get("tables"));
    }

    private static List<String> rows(JsonNode result, String part, String table) {
        return names(named(part(result, part).get("tables"), table).get("rows"));
    }

    /** Returns the figures of a row by column. */
    private static JsonNode row(JsonNode result, String part, String table, String row) {
        return named(named(part(result, part).get("tables"), table).get("rows"), row)
                .get("figures");
    }

    private static JsonNode figure(JsonNode result, String part, String table, String row, String column) {
        return row(result, part, table, row).get(column);
    }

    private static double value(JsonNode result, String part, String table, String row, String column) {
        return figure(result, part, table, row, column).get("value").asDouble();
    }

    private static long queryLong(String sql) throws SQLException {
        return Long.parseLong(query(sql));
    }

    private static String query(String sql) throws SQLException {
        try (var connection = server.dataSource().getConnection();
                var statement = connection.createStatement();
                var row = statement.executeQuery(sql)) {
            row.next();
            return row.getString(1);
        }
    }
}
