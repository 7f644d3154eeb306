package io.eventsql;

import java.time.Duration;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Settings of an {@link EventSql} instance. Immutable; created by {@link #builder()}, which rejects values out of range
 * with an {@link InvalidInputException} that names the setting and the limit.
 */
public final class Settings {
    public static final String DEFAULT_SCHEMA = "eventsql";
    public static final boolean DEFAULT_MIGRATE_SCHEMA = true;
    public static final Duration DEFAULT_PUBLISH_TIMEOUT = Duration.ofSeconds(30);
    public static final long DEFAULT_BUFFER_BYTES = 16L << 20;
    public static final int DEFAULT_MAX_EVENT_BYTES = 4 << 20;
    public static final int DEFAULT_MAX_KEY_BYTES = 1_024;
    public static final int DEFAULT_MAX_HEADERS_BYTES = 16 << 10;
    public static final int DEFAULT_MAX_BATCH_EVENTS = 5_000;
    public static final long DEFAULT_MAX_BATCH_BYTES = 8L << 20;
    public static final int DEFAULT_APPEND_CONNECTIONS = 2;
    public static final Duration DEFAULT_MAX_COMMIT_DELAY = Duration.ofMillis(5);
    public static final Duration DEFAULT_NETWORK_TIMEOUT = Duration.ofSeconds(10);
    public static final Duration DEFAULT_NOTIFY_INTERVAL = Duration.ofMillis(5);
    public static final Duration DEFAULT_POLL_INTERVAL = Duration.ofSeconds(3);
    public static final Duration DEFAULT_LEASE = Duration.ofSeconds(10);
    public static final Duration DEFAULT_HEARTBEAT = Duration.ofSeconds(3);
    public static final Duration DEFAULT_OUTBOX_POLL_INTERVAL = Duration.ofSeconds(5);
    public static final Duration DEFAULT_OUTBOX_LEASE = Duration.ofSeconds(15);
    public static final int DEFAULT_OUTBOX_PAGE_EVENTS = 5_000;
    public static final Duration DEFAULT_MAX_REPLICA_LAG = Duration.ofSeconds(10);
    public static final Duration DEFAULT_CLOSE_TIMEOUT = Duration.ofSeconds(25);

    private static final Pattern SCHEMA = Pattern.compile("(?!pg_)[a-z][a-z0-9_]{0,30}");

    private final Builder values;

    private Settings(Builder values) {
        this.values = values;
    }

    /** Returns the default settings. */
    public static Settings defaults() {
        return builder().build();
    }

    /** Returns a builder that starts with the default settings. */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns the database schema of all tables: lower-case letters, digits and underscores, starting with a letter but not
     * with {@code pg_}, at most 31 characters.
     */
    public String schema() {
        return values.schema;
    }

    /**
     * Returns whether the schema is created and migrated when a shard is opened. If {@code false}, the schema must have
     * been prepared, and the library's role needs no right to create it.
     */
    public boolean migrateSchema() {
        return values.migrateSchema;
    }

    /** Returns the maximum duration of a publish call, including the wait for a full buffer; 10 ms to 1 hour. */
    public Duration publishTimeout() {
        return values.publishTimeout;
    }

    /**
     * Returns the size of the publish buffer of each shard in bytes: the events that wait to be appended and those being
     * appended, each with 256 bytes for its objects; 64 KiB to 16 GiB.
     */
    public long bufferBytes() {
        return values.bufferBytes;
    }

    /** Returns the maximum size of an event's value in bytes; 1 byte to 256 MiB. */
    public int maxEventBytes() {
        return values.maxEventBytes;
    }

    /** Returns the maximum size of an event's key in bytes of UTF-8; 1 byte to 64 KiB. */
    public int maxKeyBytes() {
        return values.maxKeyBytes;
    }

    /** Returns the maximum size of an event's headers in bytes of UTF-8 encoded JSON; 2 bytes to 16 MiB. */
    public int maxHeadersBytes() {
        return values.maxHeadersBytes;
    }

    /** Returns the maximum number of events in a batch, and therefore in a {@code publishAll}; 1 to 100,000. */
    public int maxBatchEvents() {
        return values.maxBatchEvents;
    }

    /**
     * Returns the maximum size of a batch, and therefore of a {@code publishAll}, in bytes; 1 KiB to 256 MiB. A single event
     * may exceed it.
     */
    public long maxBatchBytes() {
        return values.maxBatchBytes;
    }

    /** Returns the number of connections per shard that append concurrently; 1 to 16. */
    public int appendConnections() {
        return values.appendConnections;
    }

    /**
     * Returns the maximum time for which a commit of asynchronously published events is delayed so that more events share it;
     * 0 to 1 second. The actual delay adapts: it grows with the duration of the commits while the database is busy, and with
     * the rate of the calls, to 2.5 ms between two commits at 1,000 calls per second with the default. There is none after a
     * pause, for a single caller, for callers that are blocked until the commit, or after large batches. 0 never delays a
     * commit.
     */
    public Duration maxCommitDelay() {
        return values.maxCommitDelay;
    }

    /** Returns the network timeout: a connection without a response for that long is closed; 100 ms to 10 minutes. */
    public Duration networkTimeout() {
        return values.networkTimeout;
    }

    /** Returns the minimum interval between two wake-up signals of a shard; 1 ms to 10 s. */
    public Duration notifyInterval() {
        return values.notifyInterval;
    }

    /** Returns the interval at which a consumer polls for new events if it gets no wake-up signal; 10 ms to 1 minute. */
    public Duration pollInterval() {
        return values.pollInterval;
    }

    /**
     * Returns the duration of a member's lease on its partitions, 300 ms to 10 minutes. If it is not renewed in time, other
     * members take over: the upper bound on failover time after a process has died.
     */
    public Duration lease() {
        return values.lease;
    }

    /** Returns the interval at which leases are renewed; 50 ms to half of {@link #lease()}. */
    public Duration heartbeat() {
        return values.heartbeat;
    }

    /**
     * Returns the interval at which the relay polls an outbox if it gets no signal that events were published; 10 ms to 1
     * minute. A third of {@link #outboxLease()} is used instead if that is shorter. It is the maximum delay of events
     * without a signal: after {@code COMMIT PREPARED}, or if a process died immediately after its commit.
     */
    public Duration outboxPollInterval() {
        return values.outboxPollInterval;
    }

    /**
     * Returns the duration of the lease of the process that relays an outbox, 1 second to 10 minutes. It is the upper bound
     * on failover time after that process has died, and on the time for which a frozen one holds locks.
     */
    public Duration outboxLease() {
        return values.outboxLease;
    }

    /**
     * Returns the maximum number of events that the relay moves in one transaction, within {@link #maxBatchBytes()}; 1 to
     * 100,000.
     */
    public int outboxPageEvents() {
        return values.outboxPageEvents;
    }

    /**
     * Returns how far a replica may be behind its primary, or for how long unavailable, until its readers ({@link ReadFrom#REPLICA})
     * read from the primary; 100 ms to 1 hour. A tenth of it, at least 20 ms and at most 1 s, is the interval at which
     * the lag is measured.
     */
    public Duration maxReplicaLag() {
        return values.maxReplicaLag;
    }

    /**
     * Returns the timeout of {@link EventSql#close()} and {@link Subscription#close()}, 0 to 1 hour. The default of 25 s
     * fits into the 30 s that Kubernetes grants a pod for termination.
     */
    public Duration closeTimeout() {
        return values.closeTimeout;
    }

    static void requireDuration(String field, @Nullable Duration value, Duration min, Duration max) {
        if (value == null || value.compareTo(min) < 0 || value.compareTo(max) > 0) {
            throw new InvalidInputException(field, "must be between " + min + " and " + max + ", but is " + value);
        }
    }

    /** Builds settings; not thread-safe. Values are validated by {@link #build()}. */
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
        private Duration maxCommitDelay = DEFAULT_MAX_COMMIT_DELAY;
        private Duration networkTimeout = DEFAULT_NETWORK_TIMEOUT;
        private Duration notifyInterval = DEFAULT_NOTIFY_INTERVAL;
        private Duration pollInterval = DEFAULT_POLL_INTERVAL;
        private Duration lease = DEFAULT_LEASE;
        private Duration heartbeat = DEFAULT_HEARTBEAT;
        private Duration outboxPollInterval = DEFAULT_OUTBOX_POLL_INTERVAL;
        private Duration outboxLease = DEFAULT_OUTBOX_LEASE;
        private int outboxPageEvents = DEFAULT_OUTBOX_PAGE_EVENTS;
        private Duration maxReplicaLag = DEFAULT_MAX_REPLICA_LAG;
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
            maxCommitDelay = other.maxCommitDelay;
            networkTimeout = other.networkTimeout;
            notifyInterval = other.notifyInterval;
            pollInterval = other.pollInterval;
            lease = other.lease;
            heartbeat = other.heartbeat;
            outboxPollInterval = other.outboxPollInterval;
            outboxLease = other.outboxLease;
            outboxPageEvents = other.outboxPageEvents;
            maxReplicaLag = other.maxReplicaLag;
            closeTimeout = other.closeTimeout;
        }

        /** Sets {@link Settings#schema()}. */
        public Builder schema(String value) {
            schema = value;
            return this;
        }

        /** Sets {@link Settings#migrateSchema()}. */
        public Builder migrateSchema(boolean value) {
            migrateSchema = value;
            return this;
        }

        /** Sets {@link Settings#publishTimeout()}. */
        public Builder publishTimeout(Duration value) {
            publishTimeout = value;
            return this;
        }

        /** Sets {@link Settings#bufferBytes()}. */
        public Builder bufferBytes(long value) {
            bufferBytes = value;
            return this;
        }

        /** Sets {@link Settings#maxEventBytes()}. */
        public Builder maxEventBytes(int value) {
            maxEventBytes = value;
            return this;
        }

        /** Sets {@link Settings#maxKeyBytes()}. */
        public Builder maxKeyBytes(int value) {
            maxKeyBytes = value;
            return this;
        }

        /** Sets {@link Settings#maxHeadersBytes()}. */
        public Builder maxHeadersBytes(int value) {
            maxHeadersBytes = value;
            return this;
        }

        /** Sets {@link Settings#maxBatchEvents()}. */
        public Builder maxBatchEvents(int value) {
            maxBatchEvents = value;
            return this;
        }

        /** Sets {@link Settings#maxBatchBytes()}. */
        public Builder maxBatchBytes(long value) {
            maxBatchBytes = value;
            return this;
        }

        /** Sets {@link Settings#appendConnections()}. */
        public Builder appendConnections(int value) {
            appendConnections = value;
            return this;
        }

        /** Sets {@link Settings#maxCommitDelay()}. */
        public Builder maxCommitDelay(Duration value) {
            maxCommitDelay = value;
            return this;
        }

        /** Sets {@link Settings#networkTimeout()}. */
        public Builder networkTimeout(Duration value) {
            networkTimeout = value;
            return this;
        }

        /** Sets {@link Settings#notifyInterval()}. */
        public Builder notifyInterval(Duration value) {
            notifyInterval = value;
            return this;
        }

        /** Sets {@link Settings#pollInterval()}. */
        public Builder pollInterval(Duration value) {
            pollInterval = value;
            return this;
        }

        /** Sets {@link Settings#lease()}, and {@link Settings#heartbeat()} to a third of it. */
        public Builder lease(Duration value) {
            lease = value;
            heartbeat = (@Nullable Duration) value == null ? DEFAULT_HEARTBEAT : value.dividedBy(3);
            return this;
        }

        /** Sets {@link Settings#heartbeat()}. */
        public Builder heartbeat(Duration value) {
            heartbeat = value;
            return this;
        }

        /** Sets {@link Settings#outboxPollInterval()}. */
        public Builder outboxPollInterval(Duration value) {
            outboxPollInterval = value;
            return this;
        }

        /** Sets {@link Settings#outboxLease()}. */
        public Builder outboxLease(Duration value) {
            outboxLease = value;
            return this;
        }

        /** Sets {@link Settings#outboxPageEvents()}. */
        public Builder outboxPageEvents(int value) {
            outboxPageEvents = value;
            return this;
        }

        /** Sets {@link Settings#maxReplicaLag()}. */
        public Builder maxReplicaLag(Duration value) {
            maxReplicaLag = value;
            return this;
        }

        /** Sets {@link Settings#closeTimeout()}. */
        public Builder closeTimeout(Duration value) {
            closeTimeout = value;
            return this;
        }

        /**
         * Returns settings with the current values.
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
            requireDuration("settings.maxCommitDelay", maxCommitDelay, Duration.ZERO, Duration.ofSeconds(1));
            requireDuration("settings.networkTimeout", networkTimeout, Duration.ofMillis(100), Duration.ofMinutes(10));
            requireDuration("settings.notifyInterval", notifyInterval, Duration.ofMillis(1), Duration.ofSeconds(10));
            requireDuration("settings.pollInterval", pollInterval, Duration.ofMillis(10), Duration.ofMinutes(1));
            requireDuration("settings.lease", lease, Duration.ofMillis(300), Duration.ofMinutes(10));
            requireDuration("settings.heartbeat", heartbeat, Duration.ofMillis(50), lease.dividedBy(2));
            requireDuration(
                    "settings.outboxPollInterval", outboxPollInterval, Duration.ofMillis(10), Duration.ofMinutes(1));
            requireDuration("settings.outboxLease", outboxLease, Duration.ofSeconds(1), Duration.ofMinutes(10));
            InvalidInputException.requireRange("settings.outboxPageEvents", outboxPageEvents, 1, 100_000);
            requireDuration("settings.maxReplicaLag", maxReplicaLag, Duration.ofMillis(100), Duration.ofHours(1));
            requireDuration("settings.closeTimeout", closeTimeout, Duration.ZERO, Duration.ofHours(1));
            return new Settings(new Builder(this));
        }
    }
}
