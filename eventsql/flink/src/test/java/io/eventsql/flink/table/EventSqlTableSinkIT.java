package io.eventsql.flink.table;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.eventsql.StreamSpec;
import io.eventsql.flink.FlinkFixture;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** INSERT INTO streams. */
@Timeout(120)
class EventSqlTableSinkIT {
    private static final int EVENTS = 300;

    private static FlinkFixture fixture;

    @BeforeAll
    static void start() {
        fixture = new FlinkFixture();
        fixture.eventSql.createStream(StreamSpec.of("in").withPartitions(2));
        fixture.publish("in", 0, EVENTS);
    }

    @AfterAll
    static void stop() {
        fixture.close();
    }

    private static StreamTableEnvironment tables(EnvironmentSettings settings) {
        StreamExecutionEnvironment environment = FlinkFixture.environment(1);
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment, settings);
        tables.getConfig().set("table.local-time-zone", "UTC");
        tables.executeSql("""
                CREATE TABLE orders (n INT, key STRING METADATA, published_at TIMESTAMP_LTZ(3) METADATA VIRTUAL)
                WITH (%s, 'format' = 'json', 'scan.bounded.mode' = 'latest')""".formatted(fixture.options("in")));
        return tables;
    }

    private static StreamTableEnvironment tables() {
        return tables(EnvironmentSettings.inStreamingMode());
    }

    private static void create(StreamTableEnvironment tables, String stream, String columns, String more) {
        fixture.eventSql.createStream(StreamSpec.of(stream).withPartitions(2));
        createTable(tables, stream, columns, more);
    }

    private static void createTable(StreamTableEnvironment tables, String stream, String columns, String more) {
        tables.executeSql("CREATE TABLE %s (%s) WITH (%s, 'format' = 'json' %s)"
                .formatted(stream, columns, fixture.options(stream), more));
    }

    @Test
    void insert_metadata_becomeKeyAndHeaders() throws Exception {
        StreamTableEnvironment tables = tables();
        create(tables, "doubled", """
                n INT, twice INT, key STRING METADATA, headers MAP<STRING, STRING> METADATA,
                written_at TIMESTAMP_LTZ(3) METADATA FROM 'published_at' VIRTUAL""", "");
        tables.executeSql("""
                INSERT INTO doubled
                SELECT n, n * 2, key, CASE WHEN MOD(n, 2) = 0 THEN MAP['half', CAST(n / 2 AS STRING)] END FROM orders""").await();
        assertThat(fixture.query("""
                        SELECT key, convert_from(value, 'UTF8')::jsonb::text, coalesce(headers ->> 'half', '-')
                        FROM eventsql.events_doubled""")).hasSize(EVENTS).containsExactlyInAnyOrderElementsOf(fixture.query("""
                        SELECT key, format('{"n": %s, "twice": %s}', n, n * 2), CASE WHEN n % 2 = 0 THEN (n / 2)::text ELSE '-' END
                        FROM eventsql.events_in,
                            LATERAL (SELECT (convert_from(value, 'UTF8')::jsonb ->> 'n')::int AS n) AS v"""));
    }

    @Test
    void insert_keyColumn_staysInTheValue() throws Exception {
        StreamTableEnvironment tables = tables(EnvironmentSettings.inBatchMode());
        create(
                tables,
                "totals",
                "bucket BIGINT, orders BIGINT",
                ", 'sink.key-column' = 'bucket', 'sink.name' = 'totals of a test'");
        tables.executeSql("INSERT INTO totals SELECT MOD(n, 7), COUNT(*) FROM orders GROUP BY MOD(n, 7)")
                .await();
        assertThat(fixture.query("SELECT key, convert_from(value, 'UTF8')::jsonb::text FROM eventsql.events_totals"))
                .hasSize(7)
                .contains("6|{\"bucket\": 6, \"orders\": 42}");
        assertThat(fixture.query("SELECT DISTINCT sink FROM eventsql.sink_producer WHERE sink LIKE 'totals%'"))
                .containsOnly("totals of a test");
    }

    @Test
    void insert_primaryKey_writesUpdatesAndTombstones() throws Exception {
        StreamTableEnvironment tables = tables();
        create(tables, "counts", "name STRING, orders BIGINT, PRIMARY KEY (name) NOT ENFORCED", "");
        tables.executeSql("""
                INSERT INTO counts
                SELECT name, orders FROM (SELECT key AS name, COUNT(*) AS orders FROM orders GROUP BY key)
                WHERE orders < 30 OR name = 'k1'""").await();
        assertThat(fixture.query("""
                        SELECT key, coalesce(convert_from(value, 'UTF8')::jsonb ->> 'orders', 'tombstone')
                        FROM (SELECT DISTINCT ON (key) * FROM eventsql.events_counts ORDER BY key, event_offset DESC) AS e""")).hasSize(10).contains("k1|30", "k0|tombstone", "k9|tombstone");
    }

    @Test
    void raw_atLeastOnce_writesTheColumn() throws Exception {
        StreamTableEnvironment tables = tables();
        fixture.eventSql.createStream(StreamSpec.of("lines").withPartitions(1));
        tables.executeSql(
                "CREATE TABLE lines (line STRING) WITH (%s, 'format' = 'raw', 'sink.delivery-guarantee' = 'at-least-once')"
                        .formatted(fixture.options("lines")));
        tables.executeSql("INSERT INTO lines VALUES ('a'), ('b')").await();
        assertThat(fixture.query("SELECT coalesce(key, '-'), convert_from(value, 'UTF8') FROM eventsql.events_lines"))
                .containsExactly("-|a", "-|b");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "updates | s STRING, c BIGINT | | SELECT key, COUNT(*) FROM orders GROUP BY key"
                        + " | doesn't support consuming update changes",
                "no_column | s STRING | , 'sink.key-column' = 'x' | SELECT key FROM orders"
                        + " | names the column 'x', but the columns of the value are [s]",
                "type | s DOUBLE | , 'sink.key-column' = 's' | SELECT 1.0 FROM orders"
                        + " | A key is STRING, VARCHAR, CHAR, or an integer type",
                "two_keys | s STRING, key STRING METADATA | , 'sink.key-column' = 's' | SELECT key, key FROM orders"
                        + " | make the metadata column 'key' VIRTUAL",
                "two_columns | a STRING, b STRING, PRIMARY KEY (a, b) NOT ENFORCED | | SELECT key, key FROM orders"
                        + " | A PRIMARY KEY must have one column",
                "guarantee | s STRING | , 'sink.delivery-guarantee' = 'none' | SELECT key FROM orders"
                        + " | must be 'exactly-once' or 'at-least-once'"
            })
    void insert_unsupported_saysWhy(String stream, String columns, String options, String select, String message) {
        StreamTableEnvironment tables = tables();
        createTable(tables, stream, columns, options == null ? "" : options); // whose stream does not exist
        assertThatExceptionOfType(Exception.class)
                .isThrownBy(() -> tables.executeSql("INSERT INTO " + stream + " " + select))
                .satisfies(e -> assertThat(org.apache.flink.util.ExceptionUtils.stringifyException(e))
                        .contains(message));
    }

    @Test
    void insert_unboundedWithoutCheckpoints_saysWhichSetting() {
        StreamExecutionEnvironment environment = FlinkFixture.environment(1);
        environment.getCheckpointConfig().disableCheckpointing();
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        tables.executeSql("CREATE TABLE endless (n INT) WITH (%s, 'format' = 'json')".formatted(fixture.options("in")));
        createTable(tables, "copy", "n INT", "");
        assertThatExceptionOfType(Exception.class)
                .isThrownBy(() -> tables.executeSql("INSERT INTO copy SELECT n FROM endless"))
                .satisfies(e -> assertThat(org.apache.flink.util.ExceptionUtils.stringifyException(e))
                        .contains("execution.checkpointing.interval"));
    }
}
