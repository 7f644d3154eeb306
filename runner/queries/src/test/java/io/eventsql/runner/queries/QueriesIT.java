package io.eventsql.runner.queries;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.math.MathContext;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.CloseableIterator;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Each query of Flink returns what its batch computation in SQL does, over a stream on two shards. */
@Timeout(180)
class QueriesIT {
    private static final Path FOLDER = Path.of("sql");
    private static final long EVENTS = 4_000;
    private static final long START_MS = Instant.parse("2026-01-01T00:00:00Z").toEpochMilli();
    private static final MathContext PRECISION = new MathContext(10);

    private static final String SEPARATOR = "\t";
    private static final String ADDED = "+";

    private static MeasuredCluster cluster;
    private static Map<String, List<String>> results;

    @BeforeAll
    static void runQueries() throws Exception {
        cluster = new MeasuredCluster(2);
        cluster.publish(EVENTS, START_MS, new Positions(1));
        Map<String, String> options = new HashMap<>(cluster.options());
        options.put("scan.bounded.mode", "latest");
        // A slow reader on a busy machine is not idle, and its events are not late.
        options.put("scan.watermark.idle-timeout", "10 min");
        results = streaming(new FlinkTables(FOLDER.resolve("positions.sql"), options, 2, Map.of()));
    }

    @AfterAll
    static void stop() {
        cluster.close();
    }

    static List<Query> queries() {
        return Query.all(FOLDER);
    }

    @ParameterizedTest
    @MethodSource("queries")
    void query_equalsBatchSql(Query query) throws Exception {
        List<String> expected = batch(query.batchSql());
        assertThat(expected).hasSizeGreaterThan(10);
        assertThat(results.get(query.name())).containsExactlyInAnyOrderElementsOf(expected);
    }

    /** Returns the rows of each query that remain when the stream has ended. All run in one job, because each job takes a second to start. */
    private static Map<String, List<String>> streaming(FlinkTables tables) throws Exception {
        List<DataStream<String>> changes = new ArrayList<>();
        for (Query query : queries()) {
            String name = query.name();
            changes.add(tables.environment()
                    .toChangelogStream(tables.table(query.sql()))
                    .map(row -> change(name, row))
                    .returns(Types.STRING));
        }
        DataStream<String> all = changes.stream().reduce(DataStream::union).orElseThrow();
        Map<String, List<String>> results = new HashMap<>();
        try (CloseableIterator<String> collected = all.executeAndCollect()) {
            collected.forEachRemaining(change -> {
                String[] fields = change.split(SEPARATOR, 3);
                List<String> rows = results.computeIfAbsent(fields[0], name -> new ArrayList<>());
                if (fields[1].equals(ADDED)) {
                    rows.add(fields[2]);
                } else {
                    assertThat(rows.remove(fields[2])).as(change).isTrue();
                }
            });
        }
        return results;
    }

    private static String change(String query, Row row) {
        boolean added = row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER;
        String columns = IntStream.range(0, row.getArity())
                .mapToObj(i -> text(row.getField(i)))
                .collect(Collectors.joining("|"));
        return String.join(SEPARATOR, query, added ? ADDED : "-", columns);
    }

    private static List<String> batch(String sql) throws SQLException {
        List<String> rows = new ArrayList<>();
        for (DataSource shard : cluster.dataSources()) {
            try (Connection connection = shard.getConnection();
                    Statement statement = connection.createStatement();
                    ResultSet result = statement.executeQuery(sql)) {
                while (result.next()) {
                    List<String> columns = new ArrayList<>();
                    for (int i = 1; i <= result.getMetaData().getColumnCount(); i++) {
                        columns.add(text(result.getObject(i)));
                    }
                    rows.add(String.join("|", columns));
                }
            }
        }
        return rows;
    }

    private static String text(Object value) {
        return switch (value) {
            case byte[] bytes -> HexFormat.of().formatHex(bytes);
            case LocalDateTime time -> time.toInstant(ZoneOffset.UTC).toString();
            case Timestamp time ->
                time.toInstant().truncatedTo(ChronoUnit.MILLIS).toString();
            case Instant time -> time.truncatedTo(ChronoUnit.MILLIS).toString();
            case Number number ->
                new BigDecimal(number.toString())
                        .round(PRECISION)
                        .stripTrailingZeros()
                        .toPlainString();
            case null, default -> String.valueOf(value);
        };
    }
}
