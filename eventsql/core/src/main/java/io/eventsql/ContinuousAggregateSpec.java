package io.eventsql;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * What {@link EventSql#startContinuousAggregate} keeps: for each key and tumbling window the number of events of a stream, and
 * the count, sum, minimum, maximum and average of its measures. Immutable and thread-safe; the functions must be thread-safe, too,
 * and return the same for the same event at any time.
 *
 * <pre>{@code
 * ContinuousAggregateSpec.of("orders_per_minute", "orders")
 *         .withKey(event -> event.headers().get("shop"))
 *         .withMeasure("cents", event -> parse(event).cents())
 * }</pre>
 */
public final class ContinuousAggregateSpec {
    /** The maximum length of the aggregate's and of a measure's name. */
    public static final int NAME_LENGTH_MAX = 38;
    /** The maximum length of the names of schema and table, in bytes of UTF-8: leaves room for suffixes. */
    public static final int TABLE_LENGTH_MAX = 50;
    /** The maximum number of measures. */
    public static final int MEASURES_MAX = 50;
    /** The maximum length of a key, in bytes of UTF-8: an index entry must have room for it. */
    public static final int KEY_BYTES_MAX = 2_000;
    /** The maximum number of digits of a number before the decimal point: that of PostgreSQL. */
    public static final int DIGITS_BEFORE_POINT_MAX = 131_072;
    /** The maximum number of digits of a number after the decimal point: that of PostgreSQL. */
    public static final int DIGITS_AFTER_POINT_MAX = 16_383;
    /** The default of {@link #schema()}. */
    public static final String DEFAULT_SCHEMA = "public";
    /** The default of {@link #window()}. */
    public static final Duration DEFAULT_WINDOW = Duration.ofMinutes(1);
    /** The default of {@link #concurrency()}. */
    public static final int DEFAULT_CONCURRENCY = 4;

    private static final Duration WINDOW_MIN = Duration.ofMillis(1);
    private static final Duration WINDOW_MAX = Duration.ofDays(3_660);

    private final Values values;

    private ContinuousAggregateSpec(Values values) {
        this.values = values;
    }

    /**
     * Returns an aggregate with the events' keys, windows of a minute by the time of publishing, and no measure, in the table
     * {@code public.<name>}.
     *
     * @param name unique in the cluster; lower-case letters, digits and single underscores, starting with a letter, at most
     *     {@value #NAME_LENGTH_MAX} characters
     * @param stream the stream's name
     */
    public static ContinuousAggregateSpec of(String name, String stream) {
        Names.requireName("aggregate.name", name, NAME_LENGTH_MAX);
        Names.requireStreamName("aggregate.stream", stream);
        return new ContinuousAggregateSpec(new Values(name, stream));
    }

    /** Returns the aggregate's name. Its members, in this and other processes, share the work. */
    public String name() {
        return values.name;
    }

    /** Returns the name of the stream. */
    public String stream() {
        return values.stream;
    }

    /** Returns the database schema of the tables, which must exist on every shard; default {@value #DEFAULT_SCHEMA}. */
    public String schema() {
        return values.schema;
    }

    /** Returns the name of the view with the results; default: {@link #name()}. */
    public String table() {
        return values.table;
    }

    /** Returns the length of a window; default 1 minute. Windows begin at multiples of it since 1970-01-01T00:00:00Z. */
    public Duration window() {
        return values.window;
    }

    /** Returns the function of the key; default: the event's key. {@code null} is a key of its own. */
    public Function<StoredEvent, @Nullable String> key() {
        return values.key;
    }

    /** Returns the function of the time that decides the window; default {@link StoredEvent#publishedAt()}. */
    public Function<StoredEvent, Instant> time() {
        return values.time;
    }

    /** Returns which events are aggregated; default: all. Tombstones and erased events never are. */
    public Predicate<StoredEvent> filter() {
        return values.filter;
    }

    /** Returns the functions of the measures by name, in the order of their declaration; unmodifiable. */
    public Map<String, Function<StoredEvent, @Nullable Number>> measures() {
        return Collections.unmodifiableMap(values.measures);
    }

    /**
     * Returns how many partitions of a shard a member handles at the same time, each on a connection of its own, 1 to {@value
     * ConsumerSpec#CONCURRENCY_MAX}; default {@value #DEFAULT_CONCURRENCY}. Twice as many while it is being rebuilt.
     */
    public int concurrency() {
        return values.concurrency;
    }

    /**
     * Returns a copy with another {@link #schema()} and {@link #table()}. Names are quoted, so they may have any characters.
     *
     * @param schema 1 to {@value #TABLE_LENGTH_MAX} bytes of UTF-8
     * @param table 1 to {@value #TABLE_LENGTH_MAX} bytes of UTF-8
     */
    public ContinuousAggregateSpec withTable(String schema, String table) {
        requireIdentifier("aggregate.schema", schema);
        requireIdentifier("aggregate.table", table);
        return with(v -> {
            v.schema = schema;
            v.table = table;
        });
    }

    /** Returns a copy with another {@link #window()}: whole milliseconds, 1 ms to 3,660 days. */
    public ContinuousAggregateSpec withWindow(Duration window) {
        Settings.requireDuration("aggregate.window", window, WINDOW_MIN, WINDOW_MAX);
        if (!window.equals(Duration.ofMillis(window.toMillis()))) {
            throw new InvalidInputException("aggregate.window", "must be whole milliseconds, but is " + window);
        }
        return with(v -> v.window = window);
    }

    /** Returns a copy with another {@link #key()}, of at most {@value #KEY_BYTES_MAX} bytes of UTF-8. */
    public ContinuousAggregateSpec withKey(Function<StoredEvent, @Nullable String> key) {
        InvalidInputException.requireGiven("aggregate.key", key);
        return with(v -> v.key = key);
    }

    /**
     * Returns a copy with another {@link #time()}. Events may come in any order: each is added to the window of its time,
     * however late it is. Times before the year -4700 or after the beginning of the year 294,000 are failures: the database stores
     * hardly more.
     */
    public ContinuousAggregateSpec withTime(Function<StoredEvent, Instant> time) {
        InvalidInputException.requireGiven("aggregate.time", time);
        return with(v -> v.time = time);
    }

    /** Returns a copy with another {@link #filter()}. */
    public ContinuousAggregateSpec withFilter(Predicate<StoredEvent> filter) {
        InvalidInputException.requireGiven("aggregate.filter", filter);
        return with(v -> v.filter = filter);
    }

    /**
     * Returns a copy with one more measure.
     *
     * @param name the prefix of its columns; lower-case letters, digits and single underscores, starting with a letter, at most
     *     {@value #NAME_LENGTH_MAX} characters
     * @param value returns the number of an event, which is added up as an exact decimal number; {@code null}: the event is not
     *     part of this measure. NaN and infinite numbers are failures, as are those with more than {@value #DIGITS_BEFORE_POINT_MAX} digits
     *     before the decimal point or {@value #DIGITS_AFTER_POINT_MAX} after it.
     */
    public ContinuousAggregateSpec withMeasure(String name, Function<StoredEvent, @Nullable Number> value) {
        Names.requireName("aggregate.measure", name, NAME_LENGTH_MAX);
        InvalidInputException.requireGiven("aggregate.measures[" + name + "]", value);
        InvalidInputException.requireRange("aggregate.measures (number)", values.measures.size() + 1L, 1, MEASURES_MAX);
        if (values.measures.containsKey(name)) {
            throw new InvalidInputException("aggregate.measures[" + name + "]", "must be declared once");
        }
        return with(v -> v.measures.put(name, value));
    }

    /** Returns a copy with another {@link #concurrency()}. */
    public ContinuousAggregateSpec withConcurrency(int value) {
        InvalidInputException.requireRange("aggregate.concurrency", value, 1, ConsumerSpec.CONCURRENCY_MAX);
        return with(v -> v.concurrency = value);
    }

    /**
     * Returns what is compared with the stored declaration: stream, window and names of the measures. Functions cannot be
     * compared.
     */
    public String declaration() {
        List<String> names = new ArrayList<>(values.measures.keySet());
        Collections.sort(names);
        return "stream " + values.stream + ", windows of " + values.window.toMillis() + " ms, measures " + names;
    }

    private static void requireIdentifier(String field, @Nullable String name) {
        int bytes = name == null ? 0 : name.getBytes(StandardCharsets.UTF_8).length;
        if (name == null || bytes < 1 || bytes > TABLE_LENGTH_MAX || name.indexOf('\0') >= 0) {
            throw new InvalidInputException(
                    field,
                    "must have 1 to " + TABLE_LENGTH_MAX + " bytes of UTF-8, but is "
                            + InvalidInputException.shown(name));
        }
    }

    private ContinuousAggregateSpec with(Consumer<Values> change) {
        Values changed = new Values(values);
        change.accept(changed);
        return new ContinuousAggregateSpec(changed);
    }

    @Override
    public String toString() {
        return "ContinuousAggregateSpec[" + values.name + ", " + declaration() + "]";
    }

    /** Modified only before the specification that contains it is created. */
    private static final class Values {
        private final String name;
        private final String stream;
        private String schema = DEFAULT_SCHEMA;
        private String table;
        private Duration window = DEFAULT_WINDOW;
        private Function<StoredEvent, @Nullable String> key = StoredEvent::key;
        private Function<StoredEvent, Instant> time = StoredEvent::publishedAt;
        private Predicate<StoredEvent> filter = event -> true;
        private final Map<String, Function<StoredEvent, @Nullable Number>> measures = new LinkedHashMap<>();
        private int concurrency = DEFAULT_CONCURRENCY;

        private Values(String name, String stream) {
            this.name = name;
            this.stream = stream;
            this.table = name;
        }

        private Values(Values other) {
            this(other.name, other.stream);
            schema = other.schema;
            table = other.table;
            window = other.window;
            key = other.key;
            time = other.time;
            filter = other.filter;
            measures.putAll(other.measures);
            concurrency = other.concurrency;
        }
    }
}
