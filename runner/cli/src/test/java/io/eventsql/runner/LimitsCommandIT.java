package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.eventsdb.EventsDb;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Runs each benchmark with tiny numbers, to check what is measured, not how fast it is. */
@Timeout(120)
class LimitsCommandIT {
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
        JsonNode result = limits("--only=append", "--rounds=2", "--round-seconds=0.1", "--cpus=7");

        JsonNode append = result.get("append");
        assertThat(append.get("event_bytes_mean").asDouble()).isBetween(220.0, 240.0);
        assertThat(append.get("copy_events_per_commit").asInt()).isEqualTo(5_000);
        assertThat(texts(append.get("copy"), "name"))
                .containsExactly("COPY BINARY, 1 connection", "COPY BINARY, 2 connections");
        assertThat(texts(append.get("library"), "name"))
                .containsExactly(
                        "publishAsync, 4 callers",
                        "publishAll of 100, 4 callers",
                        "publish, 50 callers",
                        "publishAsync, 4 callers, end to end",
                        "publishAll of 100, 4 callers, end to end",
                        "publish, 50 callers, end to end");
        assertThat(texts(append.get("group_commit"), "name"))
                .containsExactly("bare group commit, 1 connection", "bare group commit, 2 connections");
        assertThat(append.get("single_to_group_commit").get("low").asDouble()).isPositive();
        for (JsonNode rate :
                List.of(append.get("copy").get(0), append.get("library").get(2))) {
            assertThat(rate.get("events_per_second").asDouble()).isPositive();
            assertThat(rate.get("rounds_events_per_second").size()).isEqualTo(2);
        }
        JsonNode ratios = append.get("library").get(0).get("ratio_to_copy");
        assertThat(ratios.get(0).asDouble())
                .isEqualTo(append.get("library").get(0).get("events_per_second").asDouble()
                        / append.get("copy").get(0).get("events_per_second").asDouble());
        assertThat(result.get("fsync").asString()).isEqualTo("on");
        assertThat(result.get("synchronous_commit").asString()).isEqualTo("on");
        assertThat(result.get("postgres_version").asString()).isNotEmpty();
        assertThat(result.get("java_version").asString()).isNotEmpty();
        assertThat(result.get("cpus").asInt()).isEqualTo(7);
        assertThat(result.get("git_commit").asString()).isEqualTo("c0ffee");
        assertThat(result.get("command").asString()).isEqualTo("this test");
        assertThat(result.has("read")).isFalse();
        assertThat(result.has("snapshot")).isFalse();
        // COPY and the group commit wrote the same rows as the library.
        for (String stream : List.of("copy_", "group_commit_2_", "publish_")) {
            assertThat(query("SELECT count(*) > 0 AND count(*) = max(event_offset) + 1 AND min(event_offset) = 0"
                            + " AND bool_and(partition = 1 AND key IS NULL AND headers IS NULL"
                            + " AND published_at BETWEEN now() - interval '5 min' AND now()"
                            + " AND (convert_from(value, 'UTF8')::json) IS NOT NULL)"
                            + " FROM eventsql.events_limits_" + stream
                            + result.get("run").asString() + " WHERE partition = 1"))
                    .as(stream)
                    .isEqualTo("t");
        }
        assertThat(query("SELECT bool_and(o.next_offset = h.next_offset) FROM limits_group_commit_2_"
                        + result.get("run").asString() + "_head h JOIN limits_group_commit_2_"
                        + result.get("run").asString() + "_offset o USING (partition)"))
                .isEqualTo("t");
    }

    @Test
    void limits_read_runsWithoutStatisticsThenWithThem() throws IOException {
        JsonNode result = limits("--only=read", "--rounds=1", "--round-seconds=0.05", "--read-events=25000");

        JsonNode read = result.get("read");
        assertThat(read.get("events").asInt()).isEqualTo(25_000);
        JsonNode without = read.get("never_analyzed").get("segments").get(0);
        assertThat(without.get("reltuples").asDouble()).isEqualTo(-1);
        assertThat(without.get("analyzed").asInt()).isZero();
        JsonNode with = read.get("analyzed").get("segments").get(0);
        assertThat(with.get("segment").asString())
                .isEqualTo(without.get("segment").asString());
        assertThat(with.get("reltuples").asDouble()).isEqualTo(25_000);
        for (JsonNode state : List.of(read.get("never_analyzed"), read.get("analyzed"))) {
            assertThat(texts(state.get("pages"), "page_events")).containsExactly("10", "100", "1000", "5000", "10000");
            state.get("pages")
                    .forEach(page ->
                            assertThat(page.get("events_per_second").asDouble()).isPositive());
            assertThat(state.get("pages").get(0).get("events_per_call").asDouble())
                    .isEqualTo(10);
            assertThat(state.get("slowest_large_page_events").asInt()).isGreaterThanOrEqualTo(1_000);
            assertThat(state.get("slowest_large_to_fastest").asDouble()).isBetween(0.0, 1.0);
        }
    }

    @Test
    void limits_large_comparesStreamsWithTheGivenNumbersOfEvents() throws IOException, SQLException {
        JsonNode result = limits("--only=large", "--large-events=2000000", "--rounds=2", "--round-seconds=0.1");

        JsonNode large = result.get("large");
        assertThat(large.get("large").get("events").asLong()).isGreaterThan(2_000_000);
        assertThat(large.get("small").get("events").asLong()).isBetween(1_000_001L, 1_999_999L);
        assertThat(large.get("publish_ratio").get("low").asDouble()).isPositive();
        assertThat(large.get("end_to_end")
                        .get(1)
                        .get("rounds_events_per_second")
                        .size())
                .isEqualTo(2);
        assertThat(large.get("large").get("append").get("locks").asLong()).isPositive();
        assertThat(query("SELECT bool_and(n = h.next_offset - h.log_start) FROM eventsql.partition_head h"
                        + " JOIN (SELECT partition, count(*) AS n FROM eventsql.events_limits_large_"
                        + result.get("run").asString() + " GROUP BY partition) e USING (partition)"
                        + " WHERE h.stream = 'limits_large_" + result.get("run").asString() + "'"))
                .isEqualTo("t");
    }

    @Test
    void limits_retention_countsWhatIsLeft() throws IOException {
        JsonNode result = limits(
                "--only=retention",
                "--rounds=1",
                "--retention-seconds=1",
                "--warmup-seconds=0",
                "--burst-seconds=1",
                "--burst-rate=10000");

        JsonNode retention = result.get("retention");
        assertThat(texts(retention.get("readers"), "reader"))
                .containsExactly("no reader", "idle reader of another segment", "idle reader of the expiring segment");
        assertThat(retention.get("missing_events").asLong()).isZero();
        assertThat(retention.get("burst").get("events").asLong()).isEqualTo(10_000);
        assertThat(retention.get("burst").get("failed_events").asLong()).isZero();
    }

    @Test
    void limits_compaction_showsSizeAndRateOverTime() throws IOException {
        JsonNode compaction = limits("--only=compaction", "--compaction-seconds=6", "--compaction-rate=1000")
                .get("compaction");

        assertThat(compaction.get("intervals").size()).isEqualTo(20);
        long handled = 0;
        for (JsonNode interval : compaction.get("intervals")) {
            assertThat(interval.get("published_events").asLong()).isEqualTo(300);
            assertThat(interval.get("bytes").asLong()).isPositive();
            handled += interval.get("handled_events").asLong();
        }
        assertThat(handled).isBetween(1_000L, 6_000L);
    }

    @Test
    void limits_cost_countsEachLoadWithAndWithoutACheckpoint() throws IOException {
        JsonNode cost = limits("--only=cost", "--rounds=2", "--cost-seconds=2", "--warmup-seconds=1")
                .get("cost");

        assertThat(texts(cost.get("loads"), "name"))
                .containsExactly(
                        "1,000/s",
                        "2,000/s, 2 members",
                        "10,000/s",
                        "publish, 50 callers",
                        "publishAll of 100, 4 callers",
                        "publishAsync, 4 callers");
        assertThat(cost.get("server").get("fsync").asString()).isEqualTo("on");
        for (JsonNode load : cost.get("loads")) {
            JsonNode steady = load.get("steady");
            steady.propertyStream()
                    .filter(figure -> !figure.getKey().matches("page_images.*|checkpoints.*"))
                    .forEach(figure -> assertThat(figure.getValue().get("low").asDouble())
                            .as(figure.getKey())
                            .isPositive());
            assertThat(steady.get("wal_bytes_per_event").get("median").asDouble())
                    .as("more than the event itself")
                    .isGreaterThan(230);
            assertThat(load.get("checkpointed")
                            .get("checkpoints_per_interval")
                            .get("low")
                            .asDouble())
                    .isGreaterThanOrEqualTo(1);
            assertThat(load.get("checkpointed")
                            .get("page_images_per_1000_events")
                            .get("low")
                            .asDouble())
                    .isPositive();
            assertThat(load.get("steady_rounds").size()).isEqualTo(2);
            JsonNode round = load.get("steady_rounds").get(0);
            assertThat(round.get("seconds").asDouble()).isGreaterThanOrEqualTo(2.0);
            assertThat(round.get("server_cpu_seconds").asDouble())
                    .isBetween(
                            0.0,
                            round.get("seconds").asDouble()
                                    * Runtime.getRuntime().availableProcessors());
        }
    }

    @Test
    void limits_fanout_handlesEachEventTenTimes() throws IOException {
        JsonNode fanout = limits("--only=fanout", "--rounds=1", "--cost-seconds=2", "--warmup-seconds=1")
                .get("fanout");

        assertThat(fanout.get("last_to_first")
                        .get("handled_per_event")
                        .get("median")
                        .asDouble())
                .isBetween(8.0, 12.0);
        assertThat(fanout.get("last_to_first")
                        .get("blocks_hit_per_event")
                        .get("median")
                        .asDouble())
                .isGreaterThan(1);
        assertThat(fanout.get("loads").get(0).get("checkpointed").isEmpty()).isTrue();
    }

    @Test
    void limits_tail_attributesTheSlowestEventsOfEachRate() throws IOException {
        JsonNode tail =
                limits("--only=tail", "--tail-seconds=3", "--warmup-seconds=1").get("tail");

        assertThat(texts(tail.get("rates"), "events_per_second")).containsExactly("1000", "10000", "25000");
        for (JsonNode rate : tail.get("rates")) {
            assertThat(rate.get("slow_from_ms").asDouble())
                    .isBetween(0.0, rate.get("latency_ms").get("max").asDouble());
            assertThat(rate.get("slow_seconds").asDouble()
                            + rate.get("other_seconds").asDouble())
                    .isGreaterThan(1);
            assertThat(rate.get("sampler_share").asDouble()).isBetween(0.0, 0.1);
            assertThat(texts(rate.get("circumstances"), "what")).contains("CPU");
            for (JsonNode circumstance : rate.get("circumstances")) {
                assertThat(circumstance.get("slow_events_share").asDouble()).isBetween(0.0, 1.0);
                assertThat(circumstance.get("slow_time_share").asDouble()).isBetween(0.0, 1.0);
                assertThat(circumstance.get("other_time_share").asDouble()).isBetween(0.0, 1.0);
            }
        }
    }

    @Test
    void limits_scheduled_comparesRoundsAndFindsEachDueEventOnce() throws IOException {
        JsonNode scheduled = limits(
                        "--only=scheduled",
                        "--rounds=1",
                        "--round-seconds=0.2",
                        "--scheduled-events=1000",
                        "--scheduled-seconds=1")
                .get("scheduled");

        assertThat(scheduled.get("none")).hasSize(1);
        assertThat(scheduled.get("pending")).hasSize(1);
        JsonNode due = scheduled.get("due");
        assertThat(due.get("events").asLong()).isEqualTo(1_000);
        assertThat(due.get("distinct").asLong()).isEqualTo(1_000);
        assertThat(due.get("early").asLong()).isZero();
    }

    @Test
    void limits_snapshot_isHeldOnlyInTheRunsWithIt() throws IOException {
        JsonNode result =
                limits("--only=snapshot", "--snapshot-seconds=1", "--snapshot-rate=200", "--warmup-seconds=0");

        JsonNode streams = result.get("snapshot").get("streams");
        assertThat(texts(streams, "partitions")).containsExactly("1", "10");
        for (JsonNode stream : streams) {
            JsonNode without = stream.get("without");
            JsonNode with = stream.get("with");
            assertThat(without.get("events").asInt()).isEqualTo(200);
            assertThat(with.get("events").asInt()).isEqualTo(200);
            assertThat(texts(without.get("tenths"), "events")).hasSize(10).allMatch(events -> events.equals("20"));
            assertThat(without.get("snapshot_age_transactions").isNull()).isTrue();
            assertThat(with.get("snapshot_age_transactions").asInt()).isPositive();
            assertThat(with.get("p99_last_to_first").asDouble()).isPositive();
            assertThat(stream.get("p99_with_to_without").asDouble()).isPositive();
        }
    }

    @Test
    void limits_handlers_handlesEachEventOnceInTheOrderOfItsKey() throws IOException {
        JsonNode result = limits(
                "--only=handlers",
                "--handlers-events=3000",
                "--handlers-sequential-events=20",
                "--handlers-concurrency=20");

        JsonNode handlers = result.get("handlers");
        assertThat(handlers.get("handler_ms").asInt()).isEqualTo(10);
        assertThat(handlers.get("keys").asInt()).isEqualTo(1_000);
        JsonNode sequential = handlers.get("sequential");
        assertThat(sequential.get("key_concurrency").asInt()).isEqualTo(1);
        assertThat(sequential.get("events").asInt()).isEqualTo(20);
        assertThat(sequential.get("events_per_second").asDouble()).isBetween(0.0, 101.0);
        JsonNode parallel = handlers.get("parallel");
        assertThat(parallel.get("key_concurrency").asInt()).isEqualTo(20);
        assertThat(parallel.get("events").asInt()).isEqualTo(3_000);
        assertThat(parallel.get("events_per_second").asDouble()).isBetween(0.0, 2_001.0);
        for (JsonNode run : List.of(sequential, parallel)) {
            assertThat(run.get("events_lost").asLong()).isZero();
            assertThat(run.get("events_duplicated").asLong()).isZero();
            assertThat(run.get("order_violations").asLong()).isZero();
        }
        assertThat(result.has("append")).isFalse();
    }

    @Test
    void limits_transactions_writesTheSameBusinessRowsWithAPlainRowAndWithAPublish() throws Exception {
        JsonNode result = limits("--only=transactions", "--rounds=1", "--round-seconds=0.2");

        JsonNode transactions = result.get("transactions");
        for (String way : List.of("plain_row", "publish", "relayed")) {
            assertThat(transactions.get(way).get("events_per_second").asDouble())
                    .as(way)
                    .isPositive();
        }
        assertThat(transactions.get("publish_to_plain_row").asDouble()).isPositive();
        String run = result.get("run").asString();
        long business = queryLong("SELECT count(*) FROM limits_order_" + run);
        long plain = queryLong("SELECT count(*) FROM limits_plain_outbox_" + run);
        long published = queryLong("SELECT count(*) FROM eventsql.events_limits_transactions_" + run);
        long relayed = queryLong("SELECT count(*) FROM eventsql.events_limits_relayed_" + run);
        assertThat(List.of(plain, published, relayed)).allMatch(count -> count > 0);
        assertThat(business).isEqualTo(plain + published + relayed / 100);
    }

    @Test
    void limits_outbox_movesEachCommittedEventWithAndWithoutAnOldSnapshot() throws IOException {
        JsonNode result = limits("--only=outbox", "--outbox-seconds=2", "--outbox-rate=100", "--warmup-seconds=1");

        JsonNode outbox = result.get("outbox");
        for (JsonNode run : List.of(outbox.get("without"), outbox.get("with"))) {
            assertThat(run.get("plain_events").asInt()).isEqualTo(200);
            assertThat(run.get("transactions").asInt()).isEqualTo(300);
            assertThat(run.get("events_in_stream").asInt()).isEqualTo(300);
            assertThat(run.get("errors").size()).isZero();
            assertThat(run.get("transaction_latency_ms").get("p50").asDouble()).isPositive();
            assertThat(texts(run.get("tenths"), "outbox_bytes_max"))
                    .hasSize(10)
                    .allMatch(bytes -> Long.parseLong(bytes) > 0);
        }
        assertThat(outbox.get("without").get("snapshot_age_transactions").isNull())
                .isTrue();
        assertThat(outbox.get("with").get("snapshot_age_transactions").asInt()).isPositive();
        assertThat(outbox.get("p99_with_to_without").asDouble()).isPositive();
    }

    @Test
    void limits_severalDatabases_areRejected() {
        int status = Runner.commandLine(
                        Map.of("DB0_HOST", "a", "DB0_PASSWORD", "p", "DB1_HOST", "b", "DB1_PASSWORD", "p"))
                .setErr(new PrintWriter(err, true))
                .execute("limits");

        assertThat(status).isEqualTo(2);
        assertThat(err.toString()).contains("Exactly one database is required, but 2 are configured");
    }

    /** Runs the command and checks that it prints and writes its report. */
    private JsonNode limits(String... options) throws IOException {
        List<String> arguments = new ArrayList<>(List.of("limits"));
        arguments.addAll(List.of(options));
        Path result = folder.resolve("result.json");
        arguments.addAll(List.of("--out=" + result, "--git-commit=c0ffee", "--command=this test"));
        int status = Runner.commandLine(Map.of(
                        "DB_URLS", server.jdbcUrl(), "DB_USER", server.username(), "DB_PASSWORD", server.password()))
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments.toArray(String[]::new));
        assertThat(status).as(err.toString()).isZero();
        assertThat(out.toString()).contains(Files.readString(folder.resolve("report.txt")));
        return JsonMapper.shared().readTree(Files.readString(result));
    }

    private static List<String> texts(JsonNode array, String field) {
        List<String> texts = new ArrayList<>();
        array.forEach(element -> texts.add(element.get(field).asString()));
        return texts;
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
