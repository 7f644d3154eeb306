package io.eventsql.internal.relay;

import io.eventsql.Event;
import io.eventsql.EventSqlException;
import io.eventsql.InvalidInputException;
import io.eventsql.Outbox;
import io.eventsql.OutboxBacklog;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.internal.append.EventValidator;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.shard.OutboxTables;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.shard.StreamRegistry;
import io.eventsql.internal.sql.MissingPrivilegeException;
import io.eventsql.internal.sql.OutboxTable;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;

/** Writes events to the outbox on the caller's connection, in the caller's transaction. Thread-safe. */
public final class OutboxPublisher implements Outbox {
    /** The number of consecutive calls whose events without a key share a partition, which keeps the number of appends low. */
    private static final int CALLS_PER_ROUTING_HASH = 64;

    private final StreamRegistry streams;
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
        this.tables = shards.tables().outbox();
        this.clusterId = shards.clusterId();
        this.validator = new EventValidator(settings);
        this.relays = relays;
        this.dataSources = List.copyOf(dataSources);
    }

    @Override
    public void publish(Connection transaction, String stream, Event event) {
        Valid valid = validator.validate(stream, event);
        write(
                transaction,
                stream,
                (connection, name) -> tables.events()
                        .insert(connection, name, valid.key(), valid.value(), valid.headers(), nextRoutingHash()));
    }

    @Override
    public void publishAll(Connection transaction, String stream, List<Event> events) {
        List<Valid> valid = validator.validateAll(stream, events);
        @Nullable String[] keys = new String[valid.size()];
        byte[] @Nullable [] values = new byte[valid.size()][];
        @Nullable String[] headers = new String[valid.size()];
        for (int i = 0; i < values.length; i++) {
            keys[i] = valid.get(i).key();
            values[i] = valid.get(i).value();
            headers[i] = valid.get(i).headers();
        }
        write(transaction, stream, (connection, name) -> {
            if (values.length > 0) {
                tables.events().insertAll(connection, name, keys, values, headers, nextRoutingHash());
            }
        });
    }

    private interface OutboxInsert {
        void execute(Connection connection, String stream) throws SQLException;
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
            StreamSpec spec = streams.require(stream, name -> tables.events().findStream(transaction, name, clusterId));
            insert.execute(transaction, spec.name());
            relays.published(transaction);
        } catch (SQLException e) {
            throw new EventSqlException(problem(MissingPrivilegeException.explain(e, transaction)), e);
        }
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
        try {
            outbox.open();
            OutboxTable.Backlog found = outbox.database()
                    .read(c -> tables.events().backlog(c, OutboxBacklog.COUNTED_MAX, outbox.otherShards()));
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
