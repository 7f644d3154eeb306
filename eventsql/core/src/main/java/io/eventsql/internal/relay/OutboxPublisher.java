package io.eventsql.internal.relay;

import io.eventsql.Event;
import io.eventsql.EventSqlException;
import io.eventsql.ExpectedVersion;
import io.eventsql.InvalidInputException;
import io.eventsql.KeyTracking;
import io.eventsql.Outbox;
import io.eventsql.OutboxBacklog;
import io.eventsql.ScheduleId;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import io.eventsql.internal.append.EventValidator;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.OutboxTables;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.CountedEvents;
import io.eventsql.internal.sql.MissingPrivilegeException;
import io.eventsql.internal.sql.OutboxTable;
import io.eventsql.internal.sql.ScheduledTable.Scheduled;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.StreamTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Writes events to the outbox on the caller's connection, in the caller's transaction. Thread-safe. */
public final class OutboxPublisher implements Outbox {
    /** The number of consecutive calls whose events without a key share a partition, which keeps the number of appends low. */
    private static final int CALLS_PER_ROUTING_HASH = 64;

    private final StreamRegistry streams;
    private final Shards shards;
    private final OutboxTables tables;
    private final UUID clusterId;
    private final EventValidator validator;
    private final Relays relays;
    private final List<DataSource> dataSources;
    private final AtomicInteger calls = new AtomicInteger();
    private volatile int routingHash = ThreadLocalRandom.current().nextInt();
    private volatile boolean closed;

    /** @param dataSources the data sources of all databases with an outbox */
    public OutboxPublisher(
            StreamRegistry streams, Shards shards, Settings settings, Relays relays, List<DataSource> dataSources) {
        this.streams = streams;
        this.shards = shards;
        this.tables = shards.tables().outbox();
        this.clusterId = shards.clusterId();
        this.validator = new EventValidator(settings);
        this.relays = relays;
        this.dataSources = List.copyOf(dataSources);
    }

    @Override
    public void publish(Connection transaction, String stream, Event event) {
        Valid valid = validator.validate(stream, event);
        write(transaction, stream, (connection, spec) -> {
            if (counts(connection, spec)) {
                publishCounted(connection, spec, List.of(valid), null);
            } else {
                tables.events()
                        .insert(
                                connection,
                                spec.name(),
                                valid.key(),
                                valid.value(),
                                valid.headers(),
                                nextRoutingHash());
            }
        });
    }

    @Override
    public void publish(Connection transaction, String stream, Event event, ExpectedVersion expected) {
        publishExpected(transaction, stream, List.of(validator.validate(stream, event)), expected);
    }

    @Override
    public void publishAll(Connection transaction, String stream, List<Event> events, ExpectedVersion expected) {
        publishExpected(transaction, stream, validator.validateAll(stream, events), expected);
    }

    private void publishExpected(Connection transaction, String stream, List<Valid> events, ExpectedVersion expected) {
        write(transaction, stream, (connection, spec) -> {
            Long version = EventValidator.expectedVersion(spec, events, expected);
            boolean counts = !events.isEmpty() && counts(connection, spec);
            if (version != null && !counts) {
                throw otherDatabase(spec);
            }
            if (counts) {
                publishCounted(connection, spec, events, version);
            } else {
                insertAll(connection, spec.name(), events);
            }
        });
    }

    private static InvalidInputException otherDatabase(StreamSpec stream) {
        return new InvalidInputException(
                "transaction",
                "must be one of the database of the key's shard, if a version is expected: the key of this event of stream "
                        + stream.name() + " is in another database");
    }

    /** Returns whether this transaction can raise versions of keys: its database is a shard. */
    private boolean counts(Connection connection, StreamSpec stream) throws SQLException {
        return stream.keyTracking() != KeyTracking.OFF && tables.counted().canPublish(connection);
    }

    private void publishCounted(
            Connection connection, StreamSpec stream, List<Valid> events, @Nullable Long expectedVersion)
            throws SQLException {
        int size = events.size();
        @Nullable Integer[] shardNumbers = new Integer[size];
        @Nullable Integer[] homes = new Integer[size];
        @Nullable String[] keys = new String[size];
        byte[] @Nullable [] values = new byte[size][];
        @Nullable String[] headers = new String[size];
        for (int i = 0; i < size; i++) {
            Valid event = events.get(i);
            keys[i] = event.key();
            values[i] = event.value();
            headers[i] = event.headers();
            String key = event.key();
            if (key != null) {
                long hash = KeyHash.of(key);
                shardNumbers[i] =
                        shards.ofSlot(stream.name(), KeyHash.slot(hash)).number();
                homes[i] = PartitionMap.home(hash, stream.partitions());
            }
        }
        CountedEvents.Events counted = new CountedEvents.Events(shardNumbers, homes, keys, values, headers);
        Long actualVersion = tables.counted()
                .publish(connection, clusterId, stream.name(), nextRoutingHash(), counted, expectedVersion);
        if (actualVersion == null || expectedVersion == null) {
            return;
        } else if (actualVersion == CountedEvents.OTHER_DATABASE) {
            throw otherDatabase(stream);
        }
        throw new VersionConflictException(
                stream.name(), Objects.requireNonNull(events.getFirst().key()), expectedVersion, actualVersion, null);
    }

    @Override
    public void publishAll(Connection transaction, String stream, List<Event> events) {
        publishAll(transaction, stream, events, ExpectedVersion.ANY);
    }

    private void insertAll(Connection connection, String stream, List<Valid> valid) throws SQLException {
        @Nullable String[] keys = new String[valid.size()];
        byte[] @Nullable [] values = new byte[valid.size()][];
        @Nullable String[] headers = new String[valid.size()];
        for (int i = 0; i < values.length; i++) {
            keys[i] = valid.get(i).key();
            values[i] = valid.get(i).value();
            headers[i] = valid.get(i).headers();
        }
        if (values.length > 0) {
            tables.events().insertAll(connection, stream, keys, values, headers, nextRoutingHash());
        }
    }

    @Override
    public UUID schedule(Connection transaction, String stream, Event event, Instant due) {
        UUID id = ScheduleId.next(due);
        Valid valid = validator.validate(stream, event);
        long[] dueMicros = {0};
        write(transaction, stream, (connection, spec) -> {
            Scheduled scheduled = new Scheduled(
                    id,
                    ScheduleId.due(id),
                    spec.name(),
                    valid.key(),
                    valid.value(),
                    valid.headers(),
                    nextRoutingHash());
            dueMicros[0] = tables.scheduled().schedule(connection, scheduled, false, null);
        });
        relays.scheduled(transaction, TimeUnit.MICROSECONDS.toNanos(dueMicros[0]));
        return id;
    }

    private interface OutboxInsert {
        void execute(Connection connection, StreamSpec stream) throws SQLException;
    }

    private void write(@Nullable Connection transaction, String stream, OutboxInsert insert) {
        if (transaction == null) {
            throw new InvalidInputException("transaction", "must not be null");
        }
        if (closed) {
            throw new EventSqlException("This EventSql instance is closed; nothing was written");
        }
        try {
            if (transaction.getAutoCommit()) {
                throw new InvalidInputException(
                        "transaction",
                        "is a connection in autocommit mode, so the event would not share your transaction; begin one"
                                + " (setAutoCommit(false)), or use EventSql.publisher()");
            }
            // Looked up on the caller's connection, because the caller may have the pool's last one.
            StreamSpec spec = streams.require(stream, name -> find(transaction, name));
            insert.execute(transaction, spec);
            relays.published(transaction);
        } catch (SQLException e) {
            throw new EventSqlException(problem(MissingPrivilegeException.explain(e, transaction)), e);
        }
    }

    /** Reads it from the transaction's database, if that is a shard: with its slots, by which calls may be routed next. */
    private Optional<StreamSpec> find(Connection transaction, String name) throws SQLException {
        if (!tables.events().mayReadStreams(transaction)) {
            return Optional.empty();
        }
        Optional<Shard> shard = shards.tables()
                .shards()
                .find(transaction)
                .filter(identity -> identity.clusterId().equals(clusterId))
                .map(identity -> shards.get(identity.number()))
                .filter(found ->
                        found.database().isPresent()); // otherwise it may have the tables of an earlier release
        if (shard.isEmpty()) {
            return Optional.empty();
        }
        Optional<StreamTable.Row> row =
                shards.tables().streams().find(transaction, name).filter(found -> !found.isPlacedElsewhere());
        row.ifPresent(shard.get().streams()::learnSlots);
        return row.map(StreamTable.Row::spec);
    }

    private static String problem(SQLException e) {
        if (SqlErrors.state(e).equals(SqlErrors.UNDEFINED_TABLE)) {
            return "The connection's database has no outbox; add its data source with EventSqlBuilder.outbox: "
                    + e.getMessage();
        }
        return "The event was not written to the outbox, and the transaction cannot be committed: " + e.getMessage();
    }

    /** Returns the routing hash of a call's events without a key; one hash serves several consecutive calls. */
    private int nextRoutingHash() {
        if (calls.incrementAndGet() % CALLS_PER_ROUTING_HASH == 0) {
            routingHash = ThreadLocalRandom.current().nextInt();
        }
        return routingHash;
    }

    @Override
    public void committed() {
        relays.committed();
    }

    @Override
    public List<DataSource> dataSources() {
        return dataSources;
    }

    @Override
    public List<OutboxBacklog> backlogs() {
        return relays.outboxes().stream().map(this::backlog).toList();
    }

    @Override
    public List<String> names() {
        return relays.outboxes().stream().map(OutboxDatabase::toString).toList();
    }

    @Override
    public OutboxBacklog backlog(String name) {
        return relays.outboxes().stream()
                .filter(outbox -> outbox.toString().equals(name))
                .findFirst()
                .map(this::backlog)
                .orElseThrow(() -> new InvalidInputException("name", "must be one of " + names() + ", but is " + name));
    }

    private OutboxBacklog backlog(OutboxDatabase outbox) {
        List<Integer> addressed = shards.all().stream().map(Shard::number).toList();
        try {
            outbox.open();
            OutboxTable.Backlog found =
                    outbox.database().read(c -> tables.events().backlog(c, OutboxBacklog.COUNTED_MAX, addressed));
            return new OutboxBacklog(
                    outbox.dataSource(), found.events(), found.refused(), Duration.ofMillis(found.oldestMillis()));
        } catch (SQLException e) {
            throw new EventSqlException("Could not read the backlog of outbox " + outbox + ": " + e.getMessage(), e);
        }
    }

    /** Rejects further calls. */
    public void close() {
        closed = true;
    }
}
