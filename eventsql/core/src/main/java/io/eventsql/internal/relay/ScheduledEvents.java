package io.eventsql.internal.relay;

import io.eventsql.EventSqlException;
import io.eventsql.ScheduleBacklog;
import io.eventsql.ScheduleId;
import io.eventsql.ScheduledEvent;
import io.eventsql.internal.shard.Shards;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.MissingPrivilegeException;
import io.eventsql.internal.sql.ScheduledTable;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Cancels and lists scheduled events, in the databases of all outboxes. Thread-safe. */
public final class ScheduledEvents {
    private static final Logger LOG = LoggerFactory.getLogger(ScheduledEvents.class);
    private static final int ATTEMPTS_MAX = 5;
    /** Before all ids. */
    private static final UUID FIRST = new UUID(0, 0);
    /** As PostgreSQL compares ids; the first bit of the first half is not set, that of the second half always is. */
    private static final Comparator<ScheduledEvent> ORDER =
            Comparator.comparing(ScheduledEvent::due).thenComparing(ScheduledEvent::id);

    private final Relays relays;
    private final Shards shards;

    public ScheduledEvents(Relays relays, Shards shards) {
        this.relays = relays;
        this.shards = shards;
    }

    /** See {@link io.eventsql.EventSql#cancelScheduled}. */
    public boolean cancel(UUID id) {
        Instant due = ScheduleId.due(id);
        EventSqlException failure = null;
        for (OutboxDatabase outbox : relays.outboxes()) {
            try {
                if (cancel(outbox, id, due)) {
                    return true;
                }
            } catch (SQLException e) {
                EventSqlException here = new EventSqlException(
                        "Event " + id + " could not be cancelled in " + outbox + "; retry the call: "
                                + SqlErrors.message(e),
                        e);
                if (failure == null) {
                    failure = here;
                } else {
                    failure.addSuppressed(here);
                }
            }
        }
        if (failure != null) {
            throw failure;
        }
        shards.requireAllGiven("Event " + id + " was not found, and may still be scheduled");
        return false;
    }

    private static boolean cancel(OutboxDatabase outbox, UUID id, Instant due) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            try {
                outbox.open();
                return outbox.database()
                        .replicatedCall(c -> outbox.tables().scheduled().cancel(c, id, due));
            } catch (SQLException e) {
                if (attempt == ATTEMPTS_MAX || SqlErrors.classify(e) != ErrorKind.ENVIRONMENT) {
                    throw e;
                }
            }
        }
    }

    /** See {@link io.eventsql.EventSql#scheduledEvents}. */
    public List<ScheduledEvent> list(@Nullable String stream, @Nullable UUID after, int max) {
        requireAllGiven();
        Instant afterDue = after == null ? Instant.EPOCH : ScheduleId.due(after);
        List<ScheduledEvent> all = new ArrayList<>();
        for (OutboxDatabase outbox : relays.outboxes()) {
            all.addAll(read(
                    outbox,
                    (c, table) ->
                            table.list(c, stream, afterDue, after == null ? FIRST : after, max, outbox.toString())));
        }
        return all.stream().sorted(ORDER).limit(max).toList();
    }

    /** See {@link io.eventsql.EventSql#scheduleBacklogs}. */
    public List<ScheduleBacklog> backlogs() {
        requireAllGiven();
        return relays.outboxes().stream().map(ScheduledEvents::backlog).toList();
    }

    /** See {@link io.eventsql.EventSql#scheduleBacklog}. */
    public ScheduleBacklog backlog(String name) {
        return relays.outboxes().stream()
                .filter(outbox -> outbox.toString().equals(name))
                .findFirst()
                .map(ScheduledEvents::backlog)
                .orElseThrow(() -> new EventSqlException("There is no shard or outbox " + name));
    }

    private void requireAllGiven() {
        shards.requireAllGiven("The scheduled events could not be read");
    }

    private static ScheduleBacklog backlog(OutboxDatabase outbox) {
        return read(outbox, (c, table) -> table.backlog(c, outbox.toString()));
    }

    @FunctionalInterface
    private interface Query<T> {
        T run(Connection connection, ScheduledTable table);
    }

    private static <T> T read(OutboxDatabase outbox, Query<T> query) {
        try {
            outbox.open();
            return outbox.database().read(c -> query.run(c, outbox.tables().scheduled()));
        } catch (SQLException e) {
            throw new EventSqlException(
                    "The scheduled events of " + outbox + " could not be read: " + SqlErrors.message(e), e);
        }
    }

    /**
     * Deletes the scheduled events of a stream in the database of every outbox, in a transaction each; not in a standalone outbox
     * where the role may not delete them.
     *
     * @return how many
     * @throws SQLException if a database is not available; repeat the call
     */
    public long deleteOf(String stream) throws SQLException {
        long deleted = 0;
        for (OutboxDatabase outbox : relays.outboxes()) {
            try {
                deleted += deleteOf(outbox, stream);
            } catch (MissingPrivilegeException e) {
                if (outbox.shard() != null) {
                    throw e;
                }
                LOG.warn(
                        "Events of stream {} that are scheduled in outbox {} were not deleted: {}",
                        stream,
                        outbox,
                        e.getMessage());
            }
        }
        return deleted;
    }

    private static long deleteOf(OutboxDatabase outbox, String stream) throws SQLException {
        outbox.open();
        return outbox.database().transaction(c -> {
            outbox.database().allowLongStatements(c); // reads all scheduled events
            return outbox.tables().scheduled().deleteOf(c, stream);
        });
    }
}
