package io.eventsql.flink.table;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.Event;
import io.eventsql.StreamSpec;
import io.eventsql.flink.FlinkFixture;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ValidationException;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** SQL of Flink over streams, next to SQL of PostgreSQL over the same streams. */
@Timeout(120)
class EventSqlTableIT {
    private static FlinkFixture fixture;

    @BeforeAll
    static void start() {
        fixture = new FlinkFixture();
        fixture.eventSql.createStream(StreamSpec.of("orders").withPartitions(3).withSegmentSize(100));
        fixture.publish("orders", 0, 1_000);
        // Ten seconds and more in each partition, in the order of the offsets.
        fixture.query("UPDATE eventsql.events_orders SET published_at = '2026-01-01 00:00:00Z'::timestamptz"
                + " + event_offset * interval '70.001 ms' + partition * interval '1 ms'");
    }

    @AfterAll
    static void stop() {
        fixture.close();
    }

    private static StreamTableEnvironment tables() {
        return tables(EnvironmentSettings.inStreamingMode());
    }

    private static StreamTableEnvironment tables(EnvironmentSettings settings) {
        // One reader for all partitions: their watermarks must be kept apart.
        StreamExecutionEnvironment environment = FlinkFixture.environment(1);
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment, settings);
        tables.getConfig().set("table.local-time-zone", "UTC");
        return tables;
    }

    private static List<String> rows(StreamTableEnvironment tables, String sql) throws Exception {
        List<String> rows = new ArrayList<>();
        try (CloseableIterator<Row> results = tables.executeSql(sql).collect()) {
            results.forEachRemaining(row -> rows.add(IntStream.range(0, row.getArity())
                    .mapToObj(i -> String.valueOf(row.getField(i)))
                    .collect(Collectors.joining("|"))));
        }
        return rows;
    }

    private static void createOrders(StreamTableEnvironment tables, String watermark, String more) {
        tables.executeSql("""
                CREATE TABLE orders (
                    n INT,
                    key STRING METADATA,
                    headers MAP<STRING, STRING> METADATA,
                    shard INT METADATA,
                    `partition` INT METADATA,
                    event_offset BIGINT METADATA FROM 'offset',
                    published_at TIMESTAMP_LTZ(3) METADATA
                    %s
                ) WITH (%s, 'format' = 'json', 'scan.page-events' = '20' %s)""".formatted(watermark, fixture.options("orders"), more));
    }

    @Test
    void filter_bounded_equalsSql() throws Exception {
        StreamTableEnvironment tables = tables();
        createOrders(tables, "", ", 'scan.bounded.mode' = 'latest'");
        List<String> filtered = rows(
                tables,
                "SELECT shard, n, key, headers['half'], `partition`, event_offset, published_at FROM orders"
                        + " WHERE MOD(n, 4) = 0 AND key <> 'k2'");
        assertThat(filtered)
                .anyMatch(row -> row.startsWith("0|"))
                .anyMatch(row -> row.startsWith("1|"))
                .containsExactlyInAnyOrderElementsOf(fixture.query("""
                        SELECT shard_number, n, key, headers ->> 'half', partition, event_offset,
                            regexp_replace(
                                to_char(published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS'),
                                '\\.000$', '') || 'Z'
                        FROM eventsql.shard, eventsql.events_orders,
                            LATERAL (SELECT (convert_from(value, 'UTF8')::jsonb ->> 'n')::int AS n) AS v
                        WHERE n % 4 = 0 AND key <> 'k2'"""));
    }

    @Test
    void tumblingWindow_ownWatermark_equalsSql() throws Exception {
        StreamTableEnvironment tables = tables();
        createOrders(
                tables,
                ", WATERMARK FOR published_at AS published_at",
                ", 'scan.bounded.mode' = 'latest', 'scan.watermark.idle-timeout' = '1 min'");
        List<String> counts = rows(tables, """
                SELECT CAST(window_start AS STRING), key, COUNT(*), SUM(n)
                FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(published_at), INTERVAL '1' SECOND))
                GROUP BY window_start, window_end, key""");
        // A key is in one partition of one shard.
        assertThat(counts).hasSizeGreaterThan(100).containsExactlyInAnyOrderElementsOf(fixture.query("""
                SELECT to_char(date_trunc('second', published_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:MI:SS.MS'),
                    key, count(*), sum((convert_from(value, 'UTF8')::jsonb ->> 'n')::int)
                FROM eventsql.events_orders
                GROUP BY 1, 2"""));
    }

    private static StreamTableEnvironment tablesByTime() {
        return tablesByTime("");
    }

    private static StreamTableEnvironment tablesByTime(String more) {
        StreamTableEnvironment tables = tables();
        createOrders(
                tables,
                ", WATERMARK FOR published_at AS SOURCE_WATERMARK()",
                ", 'scan.bounded.mode' = 'latest'" + more);
        return tables;
    }

    /** An idle time of 0, which Flink does not accept, is never. */
    @Test
    void slidingWindow_neverIdle_equalsSql() throws Exception {
        assertThat(rows(tablesByTime(", 'scan.watermark.idle-timeout' = '0 s'"), """
                SELECT CAST(window_start AS STRING), key, COUNT(*), MAX(n)
                FROM TABLE(HOP(TABLE orders, DESCRIPTOR(published_at), INTERVAL '1' SECOND, INTERVAL '3' SECOND))
                GROUP BY window_start, window_end, key"""))
                .containsExactlyInAnyOrderElementsOf(fixture.query("""
                        SELECT to_char(
                                date_trunc('second', published_at AT TIME ZONE 'UTC') - s * interval '1 second',
                                'YYYY-MM-DD HH24:MI:SS.MS'),
                            key, count(*), max((convert_from(value, 'UTF8')::jsonb ->> 'n')::int)
                        FROM eventsql.events_orders, generate_series(0, 2) AS s
                        GROUP BY 1, 2"""));
    }

    @Test
    void sessionWindow_equalsSql() throws Exception {
        StreamTableEnvironment tables = tablesByTime();
        tables.executeSql("CREATE VIEW some_orders AS SELECT * FROM orders WHERE MOD(n, 7) < 3");
        List<String> sessions = rows(tables, """
                SELECT CAST(window_start AS STRING), key, COUNT(*)
                FROM TABLE(SESSION(
                    TABLE some_orders PARTITION BY key, DESCRIPTOR(published_at), INTERVAL '0.5' SECOND))
                GROUP BY window_start, window_end, key""");
        assertThat(sessions).hasSizeGreaterThan(10).containsExactlyInAnyOrderElementsOf(fixture.query("""
                SELECT to_char(min(published_at AT TIME ZONE 'UTC'), 'YYYY-MM-DD HH24:MI:SS.MS'), key, count(*)
                FROM (SELECT *, count(*) FILTER (WHERE is_first) OVER (PARTITION BY key ORDER BY published_at) AS session
                    FROM (SELECT *, published_at - lag(published_at) OVER (PARTITION BY key ORDER BY published_at)
                            > interval '0.5 second' AS is_first
                        FROM eventsql.events_orders
                        WHERE (convert_from(value, 'UTF8')::jsonb ->> 'n')::int % 7 < 3) AS e) AS e
                GROUP BY key, session"""));
    }

    @Test
    void pattern_ofTwoEvents_equalsSql() throws Exception {
        List<String> matches = rows(tablesByTime(), """
                SELECT key, first_n, second_n
                FROM orders MATCH_RECOGNIZE (
                    PARTITION BY key
                    ORDER BY published_at
                    MEASURES a.n AS first_n, b.n AS second_n
                    ONE ROW PER MATCH
                    AFTER MATCH SKIP PAST LAST ROW
                    PATTERN (a b) WITHIN INTERVAL '1' SECOND
                    DEFINE a AS MOD(a.n, 7) < 3, b AS MOD(b.n, 7) > 3)""");
        assertThat(matches).hasSizeGreaterThan(100).containsExactlyInAnyOrderElementsOf(fixture.query("""
                SELECT key, n, next_n
                FROM (SELECT *, lead(n) OVER w AS next_n, lead(published_at) OVER w AS next_at
                    FROM eventsql.events_orders,
                        LATERAL (SELECT (convert_from(value, 'UTF8')::jsonb ->> 'n')::int AS n) AS v
                    WINDOW w AS (PARTITION BY key ORDER BY published_at)) AS e
                WHERE n % 7 < 3 AND next_n % 7 > 3 AND next_at < published_at + interval '1 second'"""));
    }

    @Test
    void aggregate_batchMode_hasItsResultOnce() throws Exception {
        StreamTableEnvironment tables = tables(EnvironmentSettings.inBatchMode());
        createOrders(tables, "", ", 'scan.bounded.mode' = 'latest'");
        assertThat(rows(tables, "SELECT key, COUNT(*), MAX(n) FROM orders GROUP BY key"))
                .containsExactlyInAnyOrderElementsOf(fixture.query("""
                        SELECT key, count(*), max((convert_from(value, 'UTF8')::jsonb ->> 'n')::int)
                        FROM eventsql.events_orders
                        GROUP BY key"""));
    }

    @Test
    void raw_startAtTime_readsValues() throws Exception {
        fixture.eventSql.createStream(StreamSpec.of("lines").withPartitions(1));
        for (String line : List.of("a", "b", "c")) {
            fixture.eventSql.publisher().publish("lines", Event.ofText("k", line));
        }
        StreamTableEnvironment tables = tables();
        tables.executeSql("CREATE TABLE lines (line STRING) WITH (" + fixture.options("lines")
                + ", 'format' = 'raw', 'scan.bounded.mode' = 'latest',"
                + " 'scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '0')");
        assertThat(rows(tables, "SELECT * FROM lines")).containsExactly("a", "b", "c");
    }

    @Test
    void options_incomplete_areRejected() {
        StreamTableEnvironment tables = tables();
        createOrders(tables, "", ", 'scan.startup.mode' = 'offset'");
        assertThatExceptionOfType(ValidationException.class)
                .isThrownBy(() -> tables.executeSql("SELECT * FROM orders"))
                .havingRootCause()
                .withMessageContaining("scan.startup.offset");
    }
}
