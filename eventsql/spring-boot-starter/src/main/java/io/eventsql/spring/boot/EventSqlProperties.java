package io.eventsql.spring.boot;

import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.spring.UnjoinableTransaction;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.util.unit.DataSize;

/**
 * How EventSQL is set. Every setting of {@link Settings} is here under its name, with its default.
 *
 * @param enabled Whether EventSQL is configured at all.
 * @param schema Database schema of all tables.
 * @param migrateSchema Whether the schema is created and migrated at start; otherwise it must have been prepared.
 * @param publishTimeout How long a publish call may take, waiting for a full buffer included.
 * @param bufferBytes Events that may wait or be on their way, for each shard.
 * @param maxEventBytes Largest value of an event.
 * @param maxKeyBytes Largest key of an event, as UTF-8.
 * @param maxHeadersBytes Largest headers of an event, as JSON in UTF-8.
 * @param maxBatchEvents Events in one transaction, and so in one publishAll.
 * @param maxBatchBytes Bytes in one transaction, and so in one publishAll.
 * @param appendConnections Connections that append at the same time, for each shard.
 * @param networkTimeout How long any answer of a database is waited for before the connection is given up.
 * @param notifyInterval Shortest time between two wake-up signals of one shard.
 * @param pollInterval How long a consumer waits at most before it looks for new events without a wake-up signal.
 * @param lease How long a member may handle its partitions without having renewed its right to.
 * @param heartbeat How often leases are renewed; 3s by default, or a third of another lease.
 * @param outboxPollInterval How often the relay looks into an outbox without any sign of a publication.
 * @param outboxLease How long the process that relays an outbox keeps that right without renewing it.
 * @param outboxPageEvents Events the relay moves in one transaction.
 * @param closeTimeout How long closing waits for what is under way.
 * @param createMissingStreams Whether a stream that is used and does not exist is created with the defaults.
 * @param preferredShard Name of the shard that gets the events without a key while it is healthy; by default all in turn.
 * @param streams Streams that are created at start, by name.
 * @param shards Databases of the cluster, by a name of your choice; without any, the application's DataSource is used.
 * @param outbox Databases from which events are published in transactions.
 * @param template How the template publishes.
 * @param cloudEvents CloudEvents attributes of what is published.
 */
@ConfigurationProperties("eventsql")
public record EventSqlProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("eventsql") String schema,
        @DefaultValue("true") boolean migrateSchema,
        @DefaultValue("30s") Duration publishTimeout,
        @DefaultValue("32MB") DataSize bufferBytes,
        @DefaultValue("4MB") DataSize maxEventBytes,
        @DefaultValue("1KB") DataSize maxKeyBytes,
        @DefaultValue("16KB") DataSize maxHeadersBytes,
        @DefaultValue("5000") int maxBatchEvents,
        @DefaultValue("8MB") DataSize maxBatchBytes,
        @DefaultValue("2") int appendConnections,
        @DefaultValue("10s") Duration networkTimeout,
        @DefaultValue("5ms") Duration notifyInterval,
        @DefaultValue("3s") Duration pollInterval,
        @DefaultValue("10s") Duration lease,
        @Nullable Duration heartbeat,
        @DefaultValue("5s") Duration outboxPollInterval,
        @DefaultValue("15s") Duration outboxLease,
        @DefaultValue("5000") int outboxPageEvents,
        @DefaultValue("25s") Duration closeTimeout,
        @DefaultValue("true") boolean createMissingStreams,
        @Nullable String preferredShard,
        @DefaultValue Map<String, Stream> streams,
        @DefaultValue Map<String, Shard> shards,
        @DefaultValue Outbox outbox,
        @DefaultValue Template template,
        @DefaultValue CloudEvents cloudEvents) {

    /** Copies the maps, which keep their order. */
    public EventSqlProperties {
        streams = new LinkedHashMap<>(streams);
        shards = new LinkedHashMap<>(shards);
    }

    /**
     * A stream that is created at start.
     *
     * @param partitions Partitions on each shard: how many members of one consumer can share the work of one shard.
     * @param segmentSize Events in one segment of a partition; old events are removed a segment at a time.
     * @param json Whether values are JSON: the stream then has a view with the value parsed.
     */
    public record Stream(
            @DefaultValue("10") int partitions,
            @DefaultValue("1000000") long segmentSize,
            @DefaultValue("false") boolean json) {}

    /**
     * A database of the cluster. It gets a pool of its own, which is no bean.
     *
     * @param url JDBC address of the database.
     * @param username User to connect as.
     * @param password Password of the user.
     * @param poolSize Connections in the pool.
     * @param connectionTimeout How long is waited for a free connection.
     * @param hikari Any other setting of the pool, by the names of HikariConfig.
     */
    public record Shard(
            @Nullable String url,
            @Nullable String username,
            @Nullable String password,
            @DefaultValue("12") int poolSize,
            @DefaultValue("10s") Duration connectionTimeout,
            @DefaultValue Map<String, String> hikari) {

        /** Copies the map. */
        public Shard {
            hikari = Map.copyOf(hikari);
        }

        /** Without the password, and whatever else may be secret. */
        @Override
        public String toString() {
            return "Shard[url=" + url + ", username=" + username + ", poolSize=" + poolSize + "]";
        }
    }

    /**
     * Where else events are published in transactions.
     *
     * @param applicationDataSource Whether the application's own DataSource gets an outbox when it is no shard.
     */
    public record Outbox(@DefaultValue("true") boolean applicationDataSource) {}

    /**
     * How the template publishes.
     *
     * @param unjoinableTransaction What to do in a transaction that events cannot be part of.
     */
    public record Template(@DefaultValue("fail") UnjoinableTransaction unjoinableTransaction) {}

    /**
     * The CloudEvents attributes that every published event gets as headers, once there is a source.
     *
     * @param source Source attribute, a URI reference such as /orders; without it no attributes are added.
     * @param typePrefix Put before the simple name of the payload's class to make the type attribute.
     * @param types Type attribute by the full name of the payload's class.
     */
    public record CloudEvents(
            @Nullable String source,
            @DefaultValue("") String typePrefix,
            @DefaultValue Map<String, String> types) {

        /** Copies the map. */
        public CloudEvents {
            types = Map.copyOf(types);
        }
    }

    /**
     * The library's settings.
     *
     * @throws io.eventsql.InvalidInputException if a value is out of range
     */
    public Settings settings() {
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
                .networkTimeout(networkTimeout)
                .notifyInterval(notifyInterval)
                .pollInterval(pollInterval)
                .outboxPollInterval(outboxPollInterval)
                .outboxLease(outboxLease)
                .outboxPageEvents(outboxPageEvents)
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

    /** More than an {@code int} holds is too much for each setting: the library says so. */
    private static int bytes(DataSize size) {
        return (int) Math.min(size.toBytes(), Integer.MAX_VALUE);
    }

    /**
     * The streams that are created at start.
     *
     * @throws io.eventsql.InvalidInputException if a name or a value is not possible
     */
    List<StreamSpec> streamSpecs() {
        return streams.entrySet().stream()
                .map(stream -> new StreamSpec(
                        stream.getKey(),
                        stream.getValue().partitions(),
                        stream.getValue().segmentSize(),
                        stream.getValue().json()))
                .toList();
    }
}
