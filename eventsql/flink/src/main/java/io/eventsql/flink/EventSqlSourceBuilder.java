package io.eventsql.flink;

import io.eventsql.reader.ReaderSettings;
import io.eventsql.reader.StreamPosition;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Builds an {@link EventSqlSource}. Not thread-safe. */
public final class EventSqlSourceBuilder<T> {
    /** How often an unbounded source looks for new partitions, if nothing else is set. */
    public static final Duration DEFAULT_DISCOVERY_INTERVAL = Duration.ofMinutes(1);
    /** For how long a shard may be unavailable before the job fails, if nothing else is set. */
    public static final Duration DEFAULT_FAILURE_TIMEOUT = Duration.ofMinutes(1);

    private final String stream;
    private final EventDeserializer<T> deserializer;
    private List<String> urls = List.of();
    private String user = "";
    private String password = "";
    private ReaderSettings reader = ReaderSettings.defaults();
    private StreamPosition start = StreamPosition.EARLIEST;
    private @Nullable StreamPosition end;
    private Duration discoveryInterval = DEFAULT_DISCOVERY_INTERVAL;
    private Duration failureTimeout = DEFAULT_FAILURE_TIMEOUT;

    EventSqlSourceBuilder(String stream, EventDeserializer<T> deserializer) {
        this.stream = Objects.requireNonNull(stream, "stream");
        this.deserializer = Objects.requireNonNull(deserializer, "deserializer");
    }

    /** Sets the JDBC URLs of all shards of the cluster, or of replicas of them, in any order. */
    public EventSqlSourceBuilder<T> urls(String... jdbcUrls) {
        this.urls = List.of(jdbcUrls);
        return this;
    }

    /** Sets the role, which needs what {@code eventsql_reader} has, and its password. */
    public EventSqlSourceBuilder<T> credentials(String newUser, String newPassword) {
        this.user = Objects.requireNonNull(newUser, "user");
        this.password = Objects.requireNonNull(newPassword, "password");
        return this;
    }

    /**
     * Sets the schema, the network timeout, the size of pages and the poll interval. A reader of the source keeps up to four
     * pages of each of its partitions in memory.
     */
    public EventSqlSourceBuilder<T> reader(ReaderSettings settings) {
        this.reader = Objects.requireNonNull(settings, "settings");
        return this;
    }

    /** Sets where a new job starts; the first event by default. A restored one continues where it was. */
    public EventSqlSourceBuilder<T> startAt(StreamPosition position) {
        this.start = Objects.requireNonNull(position, "position");
        return this;
    }

    /**
     * Makes the source bounded: it ends at this position, exclusively, which is resolved when the job starts. {@link
     * StreamPosition#LATEST} reads everything that is stored then.
     */
    public EventSqlSourceBuilder<T> endAt(StreamPosition position) {
        this.end = Objects.requireNonNull(position, "position");
        return this;
    }

    /** Sets how often an unbounded source looks for new partitions, which it reads from their first event; zero: never. */
    public EventSqlSourceBuilder<T> discoveryInterval(Duration interval) {
        this.discoveryInterval = requireNotNegative("discoveryInterval", interval);
        return this;
    }

    /** Sets for how long a shard may be unavailable before the job fails. The other shards are still read. */
    public EventSqlSourceBuilder<T> failureTimeout(Duration timeout) {
        this.failureTimeout = requireNotNegative("failureTimeout", timeout);
        return this;
    }

    private static Duration requireNotNegative(String name, Duration time) {
        if (time.isNegative()) {
            throw new IllegalArgumentException(name + " must not be negative, but is " + time);
        }
        return time;
    }

    /**
     * Returns the source. Connects to nothing.
     *
     * @throws IllegalArgumentException if there are no URLs
     */
    public EventSqlSource<T> build() {
        if (urls.isEmpty()) {
            throw new IllegalArgumentException("urls must not be empty");
        }
        return new EventSqlSource<>(
                new SourceSettings(urls, user, password, reader, stream, start, end, discoveryInterval, failureTimeout),
                deserializer);
    }
}
