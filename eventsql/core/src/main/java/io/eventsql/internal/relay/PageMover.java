package io.eventsql.internal.relay;

import io.eventsql.StreamSpec;
import io.eventsql.internal.append.PartitionGroup;
import io.eventsql.internal.relay.Destinations.Destination;
import io.eventsql.internal.retain.SegmentKeeper;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.OutboxTable.Row;
import io.eventsql.internal.sql.RelayTable;
import io.eventsql.internal.sql.RelayTable.RelayLease;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.sql.TransferTable.Addressed;
import io.eventsql.internal.wake.WakeUp;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves pages of events out of the outbox, each in one transaction: locks the relay's row, deletes the page, appends the
 * events of this database to their streams and inserts the others into the transfer table. Used by one thread.
 *
 * <p>An event that cannot be appended fails the whole transaction. Smaller and smaller pages isolate it; then it is moved
 * to the refused table.
 */
final class PageMover {
    private static final Logger LOG = LoggerFactory.getLogger(PageMover.class);

    private final OutboxDatabase outbox;
    private final Destinations destinations;
    private final SegmentKeeper segments;
    private final WakeUp wakeUp;
    private final PageSize size;
    /** The producer of this mover's batches. A batch is never resent, so each has a new number. */
    private final UUID producer = UUID.randomUUID();

    private long number;
    private Attempt attempt = new Attempt();
    private @Nullable Refusal refusal;

    PageMover(OutboxDatabase outbox, Destinations destinations, SegmentKeeper segments, WakeUp wakeUp, PageSize size) {
        this.outbox = outbox;
        this.destinations = destinations;
        this.segments = segments;
        this.wakeUp = wakeUp;
        this.size = size;
    }

    /** An event that the database has rejected. */
    private record Refusal(long id, String error) {}

    /** The work of the current transaction. */
    private static final class Attempt {
        List<Row> page = List.of();
        final List<PartitionGroup> groups = new ArrayList<>();
        final List<Addressed> addressed = new ArrayList<>();
        final Set<String> unknown = new LinkedHashSet<>();
        final List<String> refused = new ArrayList<>();
        long[] firstOffsets = {};
        String incarnation = "";
    }

    /**
     * The result of moving a page.
     *
     * @param events the number of events that left the outbox
     * @param full whether there may be more
     * @param toShards the shards for which events were inserted into the transfer table
     */
    record Moved(int events, boolean full, Set<Integer> toShards) {
        private static final Moved NOTHING_YET = new Moved(0, true, Set.of());
    }

    /**
     * Moves one page.
     *
     * @throws SQLException {@link SqlErrors#RELAY_LOST} if the lease has ended; any other failure can be retried
     */
    Moved move(RelayLease lease) throws SQLException {
        attempt = new Attempt();
        int limit = size.events();
        try {
            outbox.database().replicatedTransaction(connection -> take(connection, lease, limit));
        } catch (SQLException e) {
            if (repair(e)) {
                return Moved.NOTHING_YET;
            }
            throw e;
        }
        if (!attempt.unknown.isEmpty()) {
            destinations.lookUp(attempt.unknown);
            return Moved.NOTHING_YET;
        }
        completeCommitted();
        boolean full = attempt.page.size() >= limit || size.isReduced();
        size.grow();
        Set<Integer> toShards = new TreeSet<>();
        attempt.addressed.forEach(event -> toShards.add(event.shard()));
        return new Moved(attempt.page.size(), full, toShards);
    }

    private Attempt take(Connection connection, RelayLease lease, int limit) throws SQLException {
        RelayTable.Page page = outbox.tables().relay().take(connection, lease, limit, size.bytes());
        attempt.page = page.rows();
        if (page.rows().isEmpty()) {
            return attempt;
        }
        for (Row event : page.rows()) {
            if (!destinations.isKnown(event.stream())) {
                attempt.unknown.add(event.stream());
            }
        }
        if (!attempt.unknown.isEmpty()) {
            connection.rollback(); // look them up first, without holding a lock
            return attempt;
        }
        Shard own = outbox.shard();
        String incarnation = own == null ? "" : own.incarnation(); // before the ids of the streams
        attempt.incarnation = incarnation;
        route(connection, page.rows());
        if (!attempt.addressed.isEmpty()) {
            outbox.tables().transfer().insert(connection, Objects.requireNonNull(page.producer()), attempt.addressed);
        }
        if (!attempt.groups.isEmpty() && own != null) {
            attempt.firstOffsets = own.tables()
                    .append()
                    .executeInTransaction(
                            connection,
                            producer,
                            ++number,
                            own.mapVersion(),
                            incarnation,
                            PartitionGroup.toRows(attempt.groups));
        }
        return attempt;
    }

    private void route(Connection connection, List<Row> page) throws SQLException {
        Map<Destination, PartitionGroup> groups = new HashMap<>();
        for (Row event : page) {
            Destination to = destinations.of(event);
            Refusal refused = refusal;
            if (to == null) {
                refuse(connection, event, "there is no stream " + event.stream());
            } else if (refused != null && refused.id() == event.id()) {
                refuse(connection, event, refused.error());
            } else if (to.shard() != outbox.shard()) {
                attempt.addressed.add(new Addressed(to.shard().number(), to.partition(), event));
            } else {
                PartitionGroup group = groups.get(to);
                if (group == null) {
                    group = new PartitionGroup(to.stream(), to.shard().ensureStream(to.stream()), to.partition());
                    groups.put(to, group);
                }
                group.add(event.key(), event.value(), event.headers());
            }
        }
        attempt.groups.addAll(groups.values());
        attempt.groups.sort(null);
    }

    private void refuse(Connection connection, Row event, String error) throws SQLException {
        attempt.refused.add(error);
        outbox.tables()
                .refused()
                .insert(
                        connection,
                        event.stream(),
                        event.key(),
                        event.value(),
                        event.headers(),
                        event.writtenAt(),
                        error);
    }

    private void completeCommitted() {
        if (!attempt.refused.isEmpty()) {
            LOG.error(
                    "Moved {} events of outbox {} to its table outbox_refused because they can never be appended; reason of the first: {}",
                    attempt.refused.size(),
                    outbox,
                    attempt.refused.getFirst());
        }
        refusal = null;
        destinations.forgetMissing();
        Shard own = outbox.shard();
        for (int i = 0; i < attempt.firstOffsets.length && own != null; i++) {
            PartitionGroup group = attempt.groups.get(i);
            segments.appended(own, group.stream(), group.partition(), attempt.firstOffsets[i] + group.size());
            wakeUp.appended(own, group.streamId(), group.partition());
        }
    }

    /** Removes the cause of a failed transaction if possible; returns whether to retry immediately. */
    private boolean repair(SQLException e) throws SQLException {
        Shard own = outbox.shard();
        if (attempt.page.isEmpty()) {
            return false;
        }
        if (own != null && SqlErrors.isMissingSegment(e)) {
            boolean created = false;
            for (PartitionGroup group : attempt.groups) {
                created |= segments.ensureRoom(own, group.stream(), group.streamId(), group.partition());
            }
            return created;
        }
        String state = SqlErrors.state(e);
        if (own != null && state.equals(SqlErrors.OTHER_INCARNATION)) {
            own.recheckIncarnation(attempt.incarnation);
            destinations.forgetAll();
            return !own.incarnation().equals(attempt.incarnation);
        }
        if (state.equals(SqlErrors.NO_PARTITION)
                || state.equals(SqlErrors.OTHER_STREAM)
                || state.equals(SqlErrors.UNDEFINED_TABLE)) {
            Collection<StreamSpec> appended = new LinkedHashSet<>();
            attempt.groups.forEach(group -> appended.add(group.stream()));
            return destinations.refreshOwn(appended);
        }
        if (SqlErrors.classify(e) != ErrorKind.CONTENT) {
            return false;
        }
        if (attempt.page.size() > 1) {
            size.halve(attempt.page.size());
        } else {
            refusal = new Refusal(attempt.page.getFirst().id(), SqlErrors.message(e));
        }
        return true;
    }
}
