package io.eventsql.flink.sink;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import org.apache.flink.connector.base.DeliveryGuarantee;

/** Builds an {@link EventSqlSink}. Not thread-safe. */
public final class EventSqlSinkBuilder<T> {
    /** The largest value of an event in bytes, if nothing else is set. */
    public static final int DEFAULT_EVENT_BYTES_MAX = 4 << 20;
    /** The most bytes of events that a writer keeps between two checkpoints, if nothing else is set. */
    public static final long DEFAULT_BUFFER_BYTES_MAX = 64L << 20;
    /** How long an event waits at most with {@link DeliveryGuarantee#AT_LEAST_ONCE}, if nothing else is set. */
    public static final Duration DEFAULT_FLUSH_INTERVAL = Duration.ofMillis(100);
    /** The time after which a statement fails if the database does not respond, if nothing else is set. */
    public static final Duration DEFAULT_NETWORK_TIMEOUT = Duration.ofSeconds(10);
    /** For how long a database may be unavailable before the job fails, if nothing else is set. */
    public static final Duration DEFAULT_FAILURE_TIMEOUT = Duration.ofMinutes(1);

    private static final Duration NETWORK_TIMEOUT_MIN = Duration.ofMillis(100);
    private static final Duration NETWORK_TIMEOUT_MAX = Duration.ofHours(1);
    private static final int NAME_LENGTH_MAX = 100;

    private final String stream;
    private final EventSerializer<T> serializer;
    private List<String> urls = List.of();
    private String user = "";
    private String password = "";
    private String schema = "eventsql";
    private String sink;
    private DeliveryGuarantee guarantee = DeliveryGuarantee.EXACTLY_ONCE;
    private int eventBytesMax = DEFAULT_EVENT_BYTES_MAX;
    private long bufferBytesMax = DEFAULT_BUFFER_BYTES_MAX;
    private Duration flushInterval = DEFAULT_FLUSH_INTERVAL;
    private Duration networkTimeout = DEFAULT_NETWORK_TIMEOUT;
    private Duration failureTimeout = DEFAULT_FAILURE_TIMEOUT;

    EventSqlSinkBuilder(String stream, EventSerializer<T> serializer) {
        this.stream = Objects.requireNonNull(stream, "stream");
        this.serializer = Objects.requireNonNull(serializer, "serializer");
        this.sink = stream;
    }

    /** Sets the JDBC URLs of all shards of the cluster, in any order; those of primary servers. */
    public EventSqlSinkBuilder<T> urls(String... jdbcUrls) {
        this.urls = List.of(jdbcUrls);
        return this;
    }

    /** Sets the role, which needs what {@code eventsql_publisher} has, and its password. */
    public EventSqlSinkBuilder<T> credentials(String newUser, String newPassword) {
        this.user = Objects.requireNonNull(newUser, "user");
        this.password = Objects.requireNonNull(newPassword, "password");
        return this;
    }

    /** Sets the database schema with the library's tables: lower-case letters, digits and underscores. */
    public EventSqlSinkBuilder<T> schema(String name) {
        if (!name.matches("[a-z_][a-z0-9_]{0,62}")) {
            throw new IllegalArgumentException(
                    "schema must have 1 to 63 lower-case letters, digits and underscores, but is " + name);
        }
        this.schema = name;
        return this;
    }

    /**
     * Sets the name under which the databases remember what they have stored of the sink, until {@code delete_sink_v1} deletes it; the
     * stream's name by default. Sinks of different jobs may share a name, but are then deleted together.
     *
     * @param name 1 to 100 characters
     */
    public EventSqlSinkBuilder<T> sink(String name) {
        if (name.isEmpty() || name.length() > NAME_LENGTH_MAX || name.indexOf('\0') >= 0) {
            throw new IllegalArgumentException(
                    "sink must have 1 to " + NAME_LENGTH_MAX + " characters, but is " + name);
        }
        this.sink = name;
        return this;
    }

    /**
     * Sets whether events are stored exactly once, when a checkpoint is complete, or at least once, without waiting for one.
     *
     * @throws IllegalArgumentException for {@link DeliveryGuarantee#NONE}
     */
    public EventSqlSinkBuilder<T> deliveryGuarantee(DeliveryGuarantee newGuarantee) {
        if (newGuarantee == DeliveryGuarantee.NONE) {
            throw new IllegalArgumentException("deliveryGuarantee must be EXACTLY_ONCE or AT_LEAST_ONCE, but is NONE");
        }
        this.guarantee = newGuarantee;
        return this;
    }

    /** Sets the largest value of an event in bytes, 1 or more: that of the applications that read the stream. */
    public EventSqlSinkBuilder<T> eventBytesMax(int bytes) {
        this.eventBytesMax = (int) requirePositive("eventBytesMax", bytes);
        return this;
    }

    /**
     * Sets the most bytes of events that a writer keeps in memory between two checkpoints, 1 or more. The job fails above: no
     * event can be stored before the checkpoint.
     */
    public EventSqlSinkBuilder<T> bufferBytesMax(long bytes) {
        this.bufferBytesMax = requirePositive("bufferBytesMax", bytes);
        return this;
    }

    /** Sets how long an event waits at most with {@link DeliveryGuarantee#AT_LEAST_ONCE}. */
    public EventSqlSinkBuilder<T> flushInterval(Duration interval) {
        this.flushInterval = requireNotNegative("flushInterval", interval);
        return this;
    }

    /** Sets the time after which a statement fails if the database does not respond, 100 ms to 1 h. */
    public EventSqlSinkBuilder<T> networkTimeout(Duration timeout) {
        if (timeout.compareTo(NETWORK_TIMEOUT_MIN) < 0 || timeout.compareTo(NETWORK_TIMEOUT_MAX) > 0) {
            throw new IllegalArgumentException("networkTimeout must be between " + NETWORK_TIMEOUT_MIN + " and "
                    + NETWORK_TIMEOUT_MAX + ", but is " + timeout);
        }
        this.networkTimeout = timeout;
        return this;
    }

    /**
     * Sets for how long a database may be unavailable before the job fails. A restarted job continues with what its checkpoint
     * contains.
     */
    public EventSqlSinkBuilder<T> failureTimeout(Duration timeout) {
        this.failureTimeout = requireNotNegative("failureTimeout", timeout);
        return this;
    }

    private static Duration requireNotNegative(String name, Duration time) {
        if (time.isNegative()) {
            throw new IllegalArgumentException(name + " must not be negative, but is " + time);
        }
        return time;
    }

    private static long requirePositive(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + " must be at least 1, but is " + value);
        }
        return value;
    }

    /**
     * Returns the sink. Connects to nothing.
     *
     * @throws IllegalArgumentException if there are no URLs
     */
    public EventSqlSink<T> build() {
        if (urls.isEmpty()) {
            throw new IllegalArgumentException("urls must not be empty");
        }
        return new EventSqlSink<>(
                new SinkSettings(
                        urls,
                        user,
                        password,
                        schema,
                        stream,
                        sink,
                        guarantee,
                        eventBytesMax,
                        bufferBytesMax,
                        flushInterval,
                        networkTimeout,
                        failureTimeout),
                serializer);
    }
}
