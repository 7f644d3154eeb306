package io.eventsql.spring.boot;

import io.eventsql.Compaction;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyTracking;
import io.eventsql.Retention;
import io.eventsql.Settings;
import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.spring.UnjoinableTransaction;
import io.eventsql.spring.internal.PropertyNames;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * The application's configuration of EventSQL. Every setting of {@link Settings} has a property with its name and default.
 *
 * @param enabled Whether EventSQL is configured at all.
 * @param schema Database schema of all tables.
 * @param migrateSchema Whether to create and migrate the schema at start; otherwise it must have been prepared.
 * @param publishTimeout Longest duration of a publish call, including the time it waits while the buffer is full.
 * @param bufferBytes Size of the publish buffer of each shard: events that wait to be appended or are being appended.
 * @param maxEventBytes Maximum size of an event's value.
 * @param maxKeyBytes Maximum size of an event's key, in UTF-8.
 * @param maxHeadersBytes Maximum size of an event's headers, as JSON in UTF-8.
 * @param maxBatchEvents Maximum number of events in one transaction, and so in one publishAll.
 * @param maxBatchBytes Maximum number of bytes in one transaction, and so in one publishAll.
 * @param appendConnections Connections that append concurrently, for each shard.
 * @param maxCommitDelay Maximum delay of a commit, so that more events share it; 0 for none.
 * @param networkTimeout Longest wait for a response of a database before the connection is aborted.
 * @param notifyInterval Shortest time between two wake-up signals of one shard.
 * @param pollInterval Longest time until a consumer polls for new events without a wake-up signal.
 * @param lease Duration of a member's lease on its partitions: upper bound on failover time.
 * @param heartbeat Interval between two renewals of the leases; 3s by default, or a third of a changed lease.
 * @param outboxPollInterval Longest time until the relay polls an outbox without a wake-up signal.
 * @param outboxLease Duration of a relay's lease on an outbox: upper bound on its failover time.
 * @param outboxPageEvents Number of events the relay moves in one transaction.
 * @param maxReplicaLag How far a replica may be behind, or for how long it may be unavailable, until its readers read from the primary.
 * @param closeTimeout Longest duration of a shutdown: listeners and publisher together.
 * @param createMissingStreams Whether to create a stream that is used but does not exist, with the default values.
 * @param preferredShard Name of the shard that gets the events without a key while it is healthy; by default all in turn.
 * @param streams Streams that are created at start, by name.
 * @param shards Databases of the cluster, by a name of your choice; without any, the application's DataSource is used.
 * @param eventTypes Classes of payloads that are only published, registered at start so that a clash of names is found.
 * @param outbox Databases in whose transactions events are published.
 * @param template Options of EventSqlTemplate.
 * @param cloudEvents CloudEvents attributes of published events.
 */
@ConfigurationProperties("eventsql")
record EventSqlProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("eventsql") String schema,
        @DefaultValue("true") boolean migrateSchema,
        @DefaultValue("30s") Duration publishTimeout,
        @DefaultValue("16MB") DataSize bufferBytes,
        @DefaultValue("4MB") DataSize maxEventBytes,
        @DefaultValue("1KB") DataSize maxKeyBytes,
        @DefaultValue("16KB") DataSize maxHeadersBytes,
        @DefaultValue("5000") int maxBatchEvents,
        @DefaultValue("8MB") DataSize maxBatchBytes,
        @DefaultValue("2") int appendConnections,
        @DefaultValue("5ms") Duration maxCommitDelay,
        @DefaultValue("10s") Duration networkTimeout,
        @DefaultValue("5ms") Duration notifyInterval,
        @DefaultValue("3s") Duration pollInterval,
        @DefaultValue("10s") Duration lease,
        @Nullable Duration heartbeat,
        @DefaultValue("5s") Duration outboxPollInterval,
        @DefaultValue("15s") Duration outboxLease,
        @DefaultValue("5000") int outboxPageEvents,
        @DefaultValue("10s") Duration maxReplicaLag,
        @DefaultValue("25s") Duration closeTimeout,
        @DefaultValue("false") boolean createMissingStreams,
        @Nullable String preferredShard,
        @DefaultValue Map<String, Stream> streams,
        @DefaultValue Map<String, Shard> shards,
        @DefaultValue List<Class<?>> eventTypes,
        @DefaultValue Outbox outbox,
        @DefaultValue Template template,
        @DefaultValue CloudEvents cloudEvents) {

    /** Copies the maps, which keep their order. */
    EventSqlProperties {
        streams = new LinkedHashMap<>(streams);
        shards = new LinkedHashMap<>(shards);
        eventTypes = List.copyOf(eventTypes);
    }

    /**
     * A stream that is created at start.
     *
     * @param partitions Partitions on each shard: maximum number of members of one consumer that share a shard.
     * @param segmentSize Events in one segment of a partition; retention removes whole segments.
     * @param json Whether values are JSON; the stream then has a view with the parsed value.
     * @param retention How long events are kept.
     * @param compaction Whether only the last event of each key is kept.
     * @param storage How events are kept in tables; the storage of an existing stream does not change.
     * @param keyTracking Whether the events of each key are counted, and indexed; that of an existing stream does not change.
     */
    record Stream(
            @DefaultValue("10") int partitions,
            @DefaultValue("1000000") long segmentSize,
            @DefaultValue("false") boolean json,
            @DefaultValue StreamRetention retention,
            @DefaultValue StreamCompaction compaction,
            @DefaultValue("rows") Storage storage,
            @DefaultValue("off") KeyTracking keyTracking) {}

    /**
     * How long a stream keeps its events. Each limit holds by itself; without any, events never expire.
     *
     * @param maxAge Events older than this expire.
     * @param maxBytes Size of a partition on one shard above which its oldest events expire.
     * @param maxEvents Number of events of a partition on one shard above which the oldest expire.
     * @param expireHandled Whether events expire when all consumers have handled them.
     * @param abandonedAfter Time without a commit after which a consumer that is behind keeps no events any more.
     */
    record StreamRetention(
            @Nullable Duration maxAge,
            @Nullable DataSize maxBytes,
            @Nullable Long maxEvents,
            @DefaultValue("false") boolean expireHandled,
            @DefaultValue("7d") Duration abandonedAfter) {
        Retention toRetention() {
            return new Retention(
                    maxAge, maxBytes == null ? null : maxBytes.toBytes(), maxEvents, expireHandled, abandonedAfter);
        }
    }

    /**
     * Whether a stream keeps only the last event of each key.
     *
     * @param enabled Whether earlier events of a key are removed.
     * @param tombstoneDelay How long an event without a value that is the last of its key stays at least.
     */
    record StreamCompaction(
            @DefaultValue("false") boolean enabled,
            @DefaultValue("24h") Duration tombstoneDelay) {
        @Nullable
        Compaction toCompaction() {
            return enabled ? new Compaction(tombstoneDelay) : null;
        }
    }

    /**
     * A database of the cluster. It has its own connection pool, which is no bean.
     *
     * @param url JDBC URL of the database.
     * @param username User to connect as.
     * @param password Password of the user.
     * @param poolSize Maximum number of connections in the pool.
     * @param connectionTimeout Longest wait for a free connection.
     * @param hikari Other settings of the pool, by the names of HikariConfig.
     * @param replica Hot standby of the database, for listeners that read from it.
     */
    record Shard(
            @Nullable String url,
            @Nullable String username,
            @Nullable String password,
            @DefaultValue("16") int poolSize,
            @DefaultValue("10s") Duration connectionTimeout,
            @DefaultValue Map<String, String> hikari,
            @DefaultValue Replica replica) {

        /** Copies the map. */
        Shard {
            hikari = Map.copyOf(hikari);
        }

        /** Without the password and other possible secrets. */
        @Override
        public String toString() {
            return "Shard[url=" + url + ", username=" + username + ", poolSize=" + poolSize + "]";
        }
    }

    /**
     * A hot standby of a shard, or several. It has a connection pool of its own, which is no bean. User, password and the
     * settings by the names of HikariConfig are those of the shard.
     *
     * @param url JDBC URL of the standbys; without it, the shard has no replica.
     * @param poolSize Maximum number of connections in the pool.
     * @param connectionTimeout Longest wait for a free connection; shorter than max-replica-lag.
     */
    record Replica(
            @Nullable String url,
            @DefaultValue("4") int poolSize,
            @DefaultValue("2s") Duration connectionTimeout) {}

    /**
     * Databases besides the shards in whose transactions events are published.
     *
     * @param applicationDataSource Whether the application's DataSource gets an outbox if it is no shard.
     */
    record Outbox(@DefaultValue("true") boolean applicationDataSource) {}

    /**
     * Options of the template.
     *
     * @param unjoinableTransaction What to do in a transaction that events cannot be part of.
     */
    record Template(@DefaultValue("fail") UnjoinableTransaction unjoinableTransaction) {}

    /**
     * CloudEvents attributes that are added to every published event as headers, if there is a source.
     *
     * @param source Source attribute, a URI reference such as /orders; without it, no attributes are added.
     * @param typePrefix Prefix of the type attribute, which is followed by the name of the payload's type.
     * @param types Type attribute by the full name of the payload's class.
     */
    record CloudEvents(
            @Nullable String source,
            @DefaultValue("") String typePrefix,
            @DefaultValue Map<String, String> types) {

        /** Copies the map. */
        CloudEvents {
            types = Map.copyOf(types);
        }
    }

    /**
     * Returns the library's settings.
     *
     * @throws io.eventsql.InvalidInputException if a value is out of range
     */
    Settings settings() {
        Settings.Builder settings = Settings.builder()
                .schema(schema)
                .migrateSchema(migrateSchema)
                .publishTimeout(publishTimeout)
                .bufferBytes(bufferBytes.toBytes())
                .maxEventBytes(bytes(maxEventBytes))
                .maxKeyBytes(bytes(maxKeyBytes))
                .maxHeadersBytes(bytes(maxHeadersBytes))
                .maxBatchEvents(maxBatchEvents)
                .maxBatchBytes(maxBatchBytes.toBytes())
                .appendConnections(appendConnections)
                .maxCommitDelay(maxCommitDelay)
                .networkTimeout(networkTimeout)
                .notifyInterval(notifyInterval)
                .pollInterval(pollInterval)
                .outboxPollInterval(outboxPollInterval)
                .outboxLease(outboxLease)
                .outboxPageEvents(outboxPageEvents)
                .maxReplicaLag(maxReplicaLag)
                .closeTimeout(closeTimeout);
        // The library's default heartbeat is not quite a third of its default lease.
        if (!lease.equals(Settings.DEFAULT_LEASE)) {
            settings.lease(lease);
        }
        if (heartbeat != null) {
            settings.heartbeat(heartbeat);
        }
        return settings.build();
    }

    /** A value beyond the range of {@code int} is out of the range of every setting: the library rejects it. */
    private static int bytes(DataSize size) {
        return (int) Math.min(size.toBytes(), Integer.MAX_VALUE);
    }

    /**
     * Returns the streams that are created at start.
     *
     * @throws io.eventsql.InvalidInputException if a name or a value is invalid; names the property
     */
    List<StreamSpec> streamSpecs() {
        return streams.entrySet().stream()
                .map(stream -> streamSpec(stream.getKey(), stream.getValue()))
                .toList();
    }

    private static StreamSpec streamSpec(String name, Stream stream) {
        try {
            return new StreamSpec(
                    name,
                    stream.partitions(),
                    stream.segmentSize(),
                    stream.json(),
                    stream.retention().toRetention(),
                    stream.compaction().toCompaction(),
                    stream.storage(),
                    stream.keyTracking());
        } catch (InvalidInputException e) {
            String property = "eventsql.streams[" + name + "]";
            String field = e.field().equals("stream.name")
                    ? property
                    : property + "." + PropertyNames.kebab(e.field().replaceFirst("^stream\\.", ""));
            throw new InvalidInputException(field, PropertyNames.problem(e));
        }
    }
}
