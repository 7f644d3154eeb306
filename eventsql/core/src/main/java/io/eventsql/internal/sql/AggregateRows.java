package io.eventsql.internal.sql;

import io.eventsql.ContinuousAggregate.Coverage;
import io.eventsql.ContinuousAggregate.Measure;
import io.eventsql.ContinuousAggregate.Window;
import io.eventsql.ContinuousAggregateSpec;
import io.eventsql.StoredEvent;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.postgresql.PGConnection;

/** The rows of a continuous aggregate: added up page by page, and read as windows. Thread-safe. */
public final class AggregateRows {
    // One statement for a page. Indexes: the primary key of the coverage, the unique one of the partials. Locks the
    // coverage's row of
    // the partition, then rows of its partials: transactions of other partitions have other rows, so they wait for
    // nothing. Events
    // that were counted before add nothing.
    private static final String ADD = """
            WITH counted AS (
                INSERT INTO {coverage} AS c
                    (generation, partition, first_offset, first_published_at, next_offset, last_published_at)
                VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT (generation, partition) DO UPDATE
                SET next_offset = excluded.next_offset, last_published_at = excluded.last_published_at
                WHERE c.next_offset <= excluded.first_offset
                RETURNING generation, partition
            ), added AS (
                INSERT INTO {partials} AS p (generation, partition, window_start, key, events{columns})
                SELECT c.generation, c.partition, timestamptz 'epoch' + a.window_start * interval '1 microsecond', a.key,
                       a.events{values}
                FROM counted c, unnest(?::bigint[], ?::text[], ?::bigint[]{arrays})
                    AS a (window_start, key, events{columns})
                ON CONFLICT (generation, window_start, key, partition) DO UPDATE
                SET events = p.events + excluded.events{updates}
            )
            SELECT count(*) FROM counted""";

    private static final String ADD_COLUMNS = ", %1$s_count, %1$s_sum, %1$s_min, %1$s_max";
    private static final String ADD_VALUES = ", a.%1$s_count, a.%1$s_sum, a.%1$s_min, a.%1$s_max";
    private static final String ADD_ARRAYS = ", ?::bigint[], ?::numeric[], ?::numeric[], ?::numeric[]";
    private static final String ADD_UPDATES = """
            ,
                    %1$s_count = p.%1$s_count + excluded.%1$s_count,
                    %1$s_sum = p.%1$s_sum + excluded.%1$s_sum,
                    %1$s_min = least(p.%1$s_min, excluded.%1$s_min),
                    %1$s_max = greatest(p.%1$s_max, excluded.%1$s_max)""";

    // Index: the primary key of the coverage. Locks the row.
    private static final String NEXT_OFFSET =
            "SELECT next_offset, last_published_at FROM {coverage} WHERE generation = ? AND partition = ? FOR UPDATE";

    // Index: the unique one of the partials, by generation and window_start. Takes no row lock.
    private static final String WINDOWS = """
            SELECT v.window_start, v.key, v.events{columns}
            FROM {view} v
            WHERE v.window_start >= ? AND v.window_start < ?{key}
            ORDER BY v.window_start, v.key NULLS FIRST
            LIMIT ?""";

    private static final String WINDOW_COLUMNS = ", v.%1$s_count, v.%1$s_sum, v.%1$s_min, v.%1$s_max";
    private static final String OF_KEY = " AND v.key IS NOT DISTINCT FROM ?";

    // Index: the primary key of the coverage. Takes no row lock.
    private static final String COVERAGE = """
            SELECT c.partition, c.generation = s.generation, c.first_offset, c.first_published_at, c.next_offset,
                   c.last_published_at
            FROM {coverage} c
            JOIN {state} s ON c.generation IN (s.generation, s.rebuilding)
            ORDER BY c.partition, c.generation""";

    private final List<String> measures;
    private final String add;
    private final String nextOffset;
    private final String windows;
    private final String windowsOfKey;
    private final String coverage;

    public AggregateRows(ContinuousAggregateSpec spec) {
        AggregateNames names = AggregateNames.of(spec);
        measures = List.copyOf(spec.measures().keySet());
        add = names.sql(ADD.replace("{columns}", each(ADD_COLUMNS))
                .replace("{values}", each(ADD_VALUES))
                .replace("{arrays}", each(ADD_ARRAYS))
                .replace("{updates}", each(ADD_UPDATES)));
        nextOffset = names.sql(NEXT_OFFSET);
        String all = names.sql(WINDOWS.replace("{columns}", each(WINDOW_COLUMNS)));
        windows = all.replace("{key}", "");
        windowsOfKey = all.replace("{key}", OF_KEY);
        coverage = names.sql(COVERAGE);
    }

    private String each(String ofMeasure) {
        return measures.stream().map(ofMeasure::formatted).collect(Collectors.joining());
    }

    /**
     * What the events of a page add to one key and window.
     *
     * @param windowStart in microseconds since 1970
     * @param measures in the order of their declaration
     */
    public record Partial(long windowStart, @Nullable String key, long events, List<Measure> measures) {}

    /**
     * Adds a page of a partition, in the transaction of its handler.
     *
     * @param events the page, also those that add nothing
     * @return {@code false} if events of it were counted before: nothing was added
     */
    public boolean add(Connection connection, int generation, List<StoredEvent> events, List<Partial> partials)
            throws SQLException {
        StoredEvent first = events.getFirst();
        StoredEvent last = events.getLast();
        PGConnection pg = connection.unwrap(PGConnection.class);
        try (PreparedStatement statement = connection.prepareStatement(add)) {
            statement.setInt(1, generation);
            statement.setInt(2, first.partition());
            statement.setLong(3, first.offset());
            statement.setObject(4, atUtc(first.publishedAt()));
            statement.setLong(5, last.offset() + 1);
            statement.setObject(6, atUtc(last.publishedAt()));
            statement.setArray(7, pg.createArrayOf("int8", longs(partials, Partial::windowStart)));
            statement.setArray(
                    8,
                    pg.createArrayOf("text", partials.stream().map(Partial::key).toArray(String[]::new)));
            statement.setArray(9, pg.createArrayOf("int8", longs(partials, Partial::events)));
            int parameter = 10;
            for (int i = 0; i < measures.size(); i++) {
                int measure = i;
                statement.setArray(
                        parameter++,
                        pg.createArrayOf(
                                "int8",
                                longs(partials, p -> p.measures().get(measure).count())));
                statement.setArray(
                        parameter++,
                        numbers(pg, partials, p -> p.measures().get(measure).sum()));
                statement.setArray(
                        parameter++,
                        numbers(pg, partials, p -> p.measures().get(measure).min()));
                statement.setArray(
                        parameter++,
                        numbers(pg, partials, p -> p.measures().get(measure).max()));
            }
            try (ResultSet row = statement.executeQuery()) {
                return row.next() && row.getInt(1) == 1;
            }
        }
    }

    private static long[] longs(List<Partial> partials, java.util.function.ToLongFunction<Partial> value) {
        return partials.stream().mapToLong(value).toArray();
    }

    private static java.sql.Array numbers(
            PGConnection pg, List<Partial> partials, Function<Partial, @Nullable BigDecimal> value)
            throws SQLException {
        return pg.createArrayOf("numeric", partials.stream().map(value).toArray(BigDecimal[]::new));
    }

    /** The first offset of a partition that was not counted yet, and when the event before it was published. */
    public record Counted(long nextOffset, Instant lastPublishedAt) {}

    /** Returns what was counted of a partition, and keeps others from counting until the transaction ends. */
    public Counted counted(Connection connection, int generation, int partition) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(nextOffset)) {
            statement.setInt(1, generation);
            statement.setInt(2, partition);
            try (ResultSet row = statement.executeQuery()) {
                return row.next() ? new Counted(row.getLong(1), instant(row, 2)) : new Counted(0, Instant.MAX);
            }
        }
    }

    /** Returns the windows of this shard that start in a range, ordered by start and key; those without a key first. */
    public List<Window> windows(Connection connection, Instant from, Instant below, int max) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(windows)) {
            statement.setObject(1, atUtc(from));
            statement.setObject(2, atUtc(below));
            statement.setInt(3, max);
            return windows(statement);
        }
    }

    /** Returns the windows of one key, as {@link #windows} does. */
    public List<Window> windows(Connection connection, @Nullable String key, Instant from, Instant below, int max)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(windowsOfKey)) {
            statement.setObject(1, atUtc(from));
            statement.setObject(2, atUtc(below));
            statement.setString(3, key);
            statement.setInt(4, max);
            return windows(statement);
        }
    }

    private List<Window> windows(PreparedStatement statement) throws SQLException {
        List<Window> result = new ArrayList<>();
        try (ResultSet rows = statement.executeQuery()) {
            while (rows.next()) {
                Map<String, Measure> values = new LinkedHashMap<>();
                int column = 4;
                for (String measure : measures) {
                    values.put(
                            measure,
                            new Measure(
                                    rows.getLong(column),
                                    rows.getBigDecimal(column + 1),
                                    rows.getBigDecimal(column + 2),
                                    rows.getBigDecimal(column + 3)));
                    column += 4;
                }
                result.add(new Window(instant(rows, 1), rows.getString(2), rows.getLong(3), values));
            }
        }
        return result;
    }

    /** Returns which events are counted on this shard, ordered by partition, first what serves. */
    public List<Coverage> coverage(Connection connection, int shard) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(coverage);
                ResultSet rows = statement.executeQuery()) {
            List<Coverage> result = new ArrayList<>();
            while (rows.next()) {
                result.add(new Coverage(
                        shard,
                        rows.getInt(1),
                        rows.getBoolean(2),
                        rows.getLong(3),
                        instant(rows, 4),
                        rows.getLong(5),
                        instant(rows, 6)));
            }
            return result;
        }
    }

    private static OffsetDateTime atUtc(Instant time) {
        return time.atOffset(ZoneOffset.UTC);
    }

    private static Instant instant(ResultSet rows, int column) throws SQLException {
        return rows.getObject(column, OffsetDateTime.class).toInstant();
    }
}
