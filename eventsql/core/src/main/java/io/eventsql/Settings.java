package io.eventsql;

import java.time.Duration;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Every limit and default of one {@link EventSql} instance, in one place. Immutable; made by {@link #builder()}, which
 * refuses values out of range with an {@link InvalidInputException} that names the setting and the limit.
 */
public final class Settings {
    public static final String DEFAULT_SCHEMA = "eventsql";
    public static final boolean DEFAULT_MIGRATE_SCHEMA = true;
    public static final Duration DEFAULT_PUBLISH_TIMEOUT = Duration.ofSeconds(30);
    public static final long DEFAULT_BUFFER_BYTES = 32L << 20;
    public static final int DEFAULT_MAX_EVENT_BYTES = 4 << 20;
    public static final int DEFAULT_MAX_KEY_BYTES = 1_024;
    public static final int DEFAULT_MAX_HEADERS_BYTES = 16 << 10;
    public static final int DEFAULT_MAX_BATCH_EVENTS = 5_000;
    public static final long DEFAULT_MAX_BATCH_BYTES = 8L << 20;
    public static final int DEFAULT_APPEND_CONNECTIONS = 2;
    public static final Duration DEFAULT_NETWORK_TIMEOUT = Duration.ofSeconds(10);
    public static final Duration DEFAULT_NOTIFY_INTERVAL = Duration.ofMillis(5);
    public static final Duration DEFAULT_POLL_INTERVAL = Duration.ofSeconds(3);
    public static final Duration DEFAULT_LEASE = Duration.ofSeconds(10);
    public static final Duration DEFAULT_HEARTBEAT = Duration.ofSeconds(3);
    public static final Duration DEFAULT_OUTBOX_POLL_INTERVAL = Duration.ofSeconds(5);
    public static final Duration DEFAULT_OUTBOX_LEASE = Duration.ofSeconds(15);
    public static final int DEFAULT_OUTBOX_PAGE_EVENTS = 5_000;
    public static final Duration DEFAULT_CLOSE_TIMEOUT = Duration.ofSeconds(30);

    private static final Pattern SCHEMA = Pattern.compile("(?!pg_)[a-z][a-z0-9_]{0,30}");

    private final Builder values;

    private Settings(Builder values) {
        this.values = values;
    }

    /** All defaults. */
    public static Settings defaults() {
        return builder().build();
    }

    public static Builder builder() {
        return new Builder();
    }

    /**
     * The database schema of all tables: lower-case letters, digits, underscores, at most 31 characters, not beginning
     * with {@code pg_}.
     */
    public String schema() {
        return values.schema;
    }

    /**
     * Whether the schema is created and migrated when a shard is opened. {@code false}: it must have been prepared, and
     * the library's role may do without the right to create it.
     */
    public boolean migrateSchema() {
        return values.migrateSchema;
    }

    /** How long a publish call may take, waiting for a full buffer included; 10 ms to 1 hour. */
    public Duration publishTimeout() {
        return values.publishTimeout;
    }

    /** Bytes of events that may wait or be on their way, for each shard; 64 KiB to 16 GiB. */
    public long bufferBytes() {
        return values.bufferBytes;
    }

    /** Bytes of an event's value; 1 to 256 MiB. */
    public int maxEventBytes() {
        return values.maxEventBytes;
    }

    /** Bytes of an event's key as UTF-8; 1 to 64 KiB. */
    public int maxKeyBytes() {
        return values.maxKeyBytes;
    }

    /** Bytes of an event's headers as JSON in UTF-8; 2 to 16 MiB. */
    public int maxHeadersBytes() {
        return values.maxHeadersBytes;
    }

    /** Events in one transaction, and so in one {@code publishAll}; 1 to 100,000. */
    public int maxBatchEvents() {
        return values.maxBatchEvents;
    }

    /**
     * Bytes in one transaction, and so in one {@code publishAll}; a single event is always possible. 1 KiB to 256 MiB.
     */
    public long maxBatchBytes() {
        return values.maxBatchBytes;
    }

    /** Connections that append at the same time, for each shard; 1 to 16. */
    public int appendConnections() {
        return values.appendConnections;
    }

    /** How long any answer of a database is waited for before the connection is given up; 100 ms to 10 minutes. */
    public Duration networkTimeout() {
        return values.networkTimeout;
    }

    /** The shortest time between two wake-up signals of one shard; 1 ms to 10 s. */
    public Duration notifyInterval() {
        return values.notifyInterval;
    }

    /** How long a consumer waits at most before it looks for new events without a wake-up signal; 10 ms to 1 minute. */
    public Duration pollInterval() {
        return values.pollInterval;
    }

    /**
     * How long a member may handle its partitions without having renewed its right to: after this, others take them
     * over; 300 ms to 10 minutes. It is the longest pause after the death of a process.
     */
    public Duration lease() {
        return values.lease;
    }

    /** How often leases are renewed: 50 ms to half of {@link #lease()}. */
    public Duration heartbeat() {
        return values.heartbeat;
    }

    /**
     * How often the relay looks into an outbox without any sign that something was published, at least three times in
     * each {@link #outboxLease()}; 10 ms to 1 minute. The longest delay where there can be no sign: behind {@code COMMIT
     * PREPARED}, or when a process died right behind its commit.
     */
    public Duration outboxPollInterval() {
        return values.outboxPollInterval;
    }

    /**
     * How long the process that relays an outbox keeps that right without renewing it: so long its death may go unnoticed,
     * and so long a frozen one may hold locks; 1 second to 10 minutes.
     */
    public Duration outboxLease() {
        return values.outboxLease;
    }

    /** Events the relay moves in one transaction, in at most {@link #maxBatchBytes()}; 1 to 100,000. */
    public int outboxPageEvents() {
        return values.outboxPageEvents;
    }

    /** How long {@link EventSql#close()} and {@link Subscription#close()} wait for what is under way; 0 to 1 hour. */
    public Duration closeTimeout() {
        return values.closeTimeout;
    }

    static void requireDuration(String field, @Nullable Duration value, Duration min, Duration max) {
        if (value == null || value.compareTo(min) < 0 || value.compareTo(max) > 0) {
            throw new InvalidInputException(field, "must be between " + min + " and " + max + ", but is " + value);
        }
    }

    /** Collects settings; not thread-safe. */
    public static final class Builder {
        private String schema = DEFAULT_SCHEMA;
        private boolean migrateSchema = DEFAULT_MIGRATE_SCHEMA;
        private Duration publishTimeout = DEFAULT_PUBLISH_TIMEOUT;
        private long bufferBytes = DEFAULT_BUFFER_BYTES;
        private int maxEventBytes = DEFAULT_MAX_EVENT_BYTES;
        private int maxKeyBytes = DEFAULT_MAX_KEY_BYTES;
        private int maxHeadersBytes = DEFAULT_MAX_HEADERS_BYTES;
        private int maxBatchEvents = DEFAULT_MAX_BATCH_EVENTS;
        private long maxBatchBytes = DEFAULT_MAX_BATCH_BYTES;
        private int appendConnections = DEFAULT_APPEND_CONNECTIONS;
        private Duration networkTimeout = DEFAULT_NETWORK_TIMEOUT;
        private Duration notifyInterval = DEFAULT_NOTIFY_INTERVAL;
        private Duration pollInterval = DEFAULT_POLL_INTERVAL;
        private Duration lease = DEFAULT_LEASE;
        private Duration heartbeat = DEFAULT_HEARTBEAT;
        private Duration outboxPollInterval = DEFAULT_OUTBOX_POLL_INTERVAL;
        private Duration outboxLease = DEFAULT_OUTBOX_LEASE;
        private int outboxPageEvents = DEFAULT_OUTBOX_PAGE_EVENTS;
        private Duration closeTimeout = DEFAULT_CLOSE_TIMEOUT;

        private Builder() {}

        private Builder(Builder other) {
            schema = other.schema;
            migrateSchema = other.migrateSchema;
            publishTimeout = other.publishTimeout;
            bufferBytes = other.bufferBytes;
            maxEventBytes = other.maxEventBytes;
            maxKeyBytes = other.maxKeyBytes;
            maxHeadersBytes = other.maxHeadersBytes;
            maxBatchEvents = other.maxBatchEvents;
            maxBatchBytes = other.maxBatchBytes;
            appendConnections = other.appendConnections;
            networkTimeout = other.networkTimeout;
            notifyInterval = other.notifyInterval;
            pollInterval = other.pollInterval;
            lease = other.lease;
            heartbeat = other.heartbeat;
            outboxPollInterval = other.outboxPollInterval;
            outboxLease = other.outboxLease;
            outboxPageEvents = other.outboxPageEvents;
            closeTimeout = other.closeTimeout;
        }

        /** See {@link Settings#schema()}. */
        public Builder schema(String value) {
            schema = value;
            return this;
        }

        /** See {@link Settings#migrateSchema()}. */
        public Builder migrateSchema(boolean value) {
            migrateSchema = value;
            return this;
        }

        /** See {@link Settings#publishTimeout()}. */
        public Builder publishTimeout(Duration value) {
            publishTimeout = value;
            return this;
        }

        /** See {@link Settings#bufferBytes()}. */
        public Builder bufferBytes(long value) {
            bufferBytes = value;
            return this;
        }

        /** See {@link Settings#maxEventBytes()}. */
        public Builder maxEventBytes(int value) {
            maxEventBytes = value;
            return this;
        }

        /** See {@link Settings#maxKeyBytes()}. */
        public Builder maxKeyBytes(int value) {
            maxKeyBytes = value;
            return this;
        }

        /** See {@link Settings#maxHeadersBytes()}. */
        public Builder maxHeadersBytes(int value) {
            maxHeadersBytes = value;
            return this;
        }

        /** See {@link Settings#maxBatchEvents()}. */
        public Builder maxBatchEvents(int value) {
            maxBatchEvents = value;
            return this;
        }

        /** See {@link Settings#maxBatchBytes()}. */
        public Builder maxBatchBytes(long value) {
            maxBatchBytes = value;
            return this;
        }

        /** See {@link Settings#appendConnections()}. */
        public Builder appendConnections(int value) {
            appendConnections = value;
            return this;
        }

        /** See {@link Settings#networkTimeout()}. */
        public Builder networkTimeout(Duration value) {
            networkTimeout = value;
            return this;
        }

        /** See {@link Settings#notifyInterval()}. */
        public Builder notifyInterval(Duration value) {
            notifyInterval = value;
            return this;
        }

        /** See {@link Settings#pollInterval()}. */
        public Builder pollInterval(Duration value) {
            pollInterval = value;
            return this;
        }

        /** See {@link Settings#lease()}; sets {@link Settings#heartbeat()} to a third of it. */
        public Builder lease(Duration value) {
            lease = value;
            heartbeat = (@Nullable Duration) value == null ? DEFAULT_HEARTBEAT : value.dividedBy(3);
            return this;
        }

        /** See {@link Settings#heartbeat()}. */
        public Builder heartbeat(Duration value) {
            heartbeat = value;
            return this;
        }

        /** See {@link Settings#outboxPollInterval()}. */
        public Builder outboxPollInterval(Duration value) {
            outboxPollInterval = value;
            return this;
        }

        /** See {@link Settings#outboxLease()}. */
        public Builder outboxLease(Duration value) {
            outboxLease = value;
            return this;
        }

        /** See {@link Settings#outboxPageEvents()}. */
        public Builder outboxPageEvents(int value) {
            outboxPageEvents = value;
            return this;
        }

        /** See {@link Settings#closeTimeout()}. */
        public Builder closeTimeout(Duration value) {
            closeTimeout = value;
            return this;
        }

        /**
         * The settings as they are now.
         *
         * @throws InvalidInputException if a value is out of range; names the setting and the limit
         */
        public Settings build() {
            @Nullable String name = schema;
            if (name == null || !SCHEMA.matcher(name).matches()) {
                throw new InvalidInputException(
                        "settings.schema",
                        "must be lower-case letters, digits and underscores, start with a letter, not with pg_, and have"
                                + " at most 31 characters, but is " + InvalidInputException.shown(schema));
            }
            requireDuration("settings.publishTimeout", publishTimeout, Duration.ofMillis(10), Duration.ofHours(1));
            InvalidInputException.requireRange("settings.bufferBytes", bufferBytes, 64L << 10, 16L << 30);
            InvalidInputException.requireRange("settings.maxEventBytes", maxEventBytes, 1, 256L << 20);
            InvalidInputException.requireRange("settings.maxKeyBytes", maxKeyBytes, 1, 64L << 10);
            InvalidInputException.requireRange("settings.maxHeadersBytes", maxHeadersBytes, 2, 16L << 20);
            InvalidInputException.requireRange("settings.maxBatchEvents", maxBatchEvents, 1, 100_000);
            InvalidInputException.requireRange("settings.maxBatchBytes", maxBatchBytes, 1L << 10, 256L << 20);
            InvalidInputException.requireRange("settings.appendConnections", appendConnections, 1, 16);
            requireDuration("settings.networkTimeout", networkTimeout, Duration.ofMillis(100), Duration.ofMinutes(10));
            requireDuration("settings.notifyInterval", notifyInterval, Duration.ofMillis(1), Duration.ofSeconds(10));
            requireDuration("settings.pollInterval", pollInterval, Duration.ofMillis(10), Duration.ofMinutes(1));
            requireDuration("settings.lease", lease, Duration.ofMillis(300), Duration.ofMinutes(10));
            requireDuration("settings.heartbeat", heartbeat, Duration.ofMillis(50), lease.dividedBy(2));
            requireDuration(
                    "settings.outboxPollInterval", outboxPollInterval, Duration.ofMillis(10), Duration.ofMinutes(1));
            requireDuration("settings.outboxLease", outboxLease, Duration.ofSeconds(1), Duration.ofMinutes(10));
            InvalidInputException.requireRange("settings.outboxPageEvents", outboxPageEvents, 1, 100_000);
            requireDuration("settings.closeTimeout", closeTimeout, Duration.ZERO, Duration.ofHours(1));
            return new Settings(new Builder(this));
        }
    }
}
