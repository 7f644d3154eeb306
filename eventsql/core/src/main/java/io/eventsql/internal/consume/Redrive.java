package io.eventsql.internal.consume;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import io.eventsql.UndecodableEventException;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ParkedEventTable;
import io.eventsql.internal.sql.ParkedEventTable.Row;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.ForeignErrors;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Redrives parked events in their order. The partition's owner does it between two pages, so no event of theirs is
 * parked at the same time. An event that succeeds is no longer parked; one that fails remains, and with it all later
 * ones of its parked key. While redriven events fail again, each after all its attempts, new events are handled in
 * between. What it reads and stores takes no permit: others use that while the shard is unavailable. Thread-safe.
 */
final class Redrive {
    private static final Logger LOG = LoggerFactory.getLogger(Redrive.class);
    private static final int PAGE_EVENTS_MAX = 100;
    /** The duration after which a round ends if an event has failed. */
    private static final long FAILING_ROUND_NANOS_MAX = TimeUnit.SECONDS.toNanos(1);

    private final Shard shard;
    private final ParkedEventTable table;
    private final Attempts attempts;
    private final Failures failures;
    private final ErasedEvents erased;

    Redrive(Shard shard, Attempts attempts, Failures failures, ErasedEvents erased) {
        this.shard = shard;
        this.table = shard.tables().parkedEvents();
        this.attempts = attempts;
        this.failures = failures;
        this.erased = erased;
    }

    /** What has failed of the events that are redriven before the next page. Used by one thread. */
    private static final class Round {
        private final long begunAt = System.nanoTime();
        private final Set<String> failedKeys = new HashSet<>();
        private boolean hasFailed;

        void recordFailure(Row row) {
            hasFailed = true;
            if (row.deadLetterOffset() == null && row.key() != null) {
                failedKeys.add(row.key());
            }
        }

        /** Returns whether an earlier event of the row's parked key has failed. */
        boolean isHeldBack(Row row) {
            return row.deadLetterOffset() == null && failedKeys.contains(row.key());
        }

        /** Returns whether new events are handled before further redriven ones, which may fail after as long. */
        boolean isOver() {
            return hasFailed && System.nanoTime() - begunAt >= FAILING_ROUND_NANOS_MAX;
        }
    }

    /** Redrives a page of the events for which that was requested, or a part of it if they fail. */
    void run(Assignment assignment, HandlerTurn turn) {
        List<Row> rows = new ArrayList<>();
        if (!turn.withoutPermit(() -> read(assignment, rows))) {
            return;
        }
        Round round = new Round();
        for (Row row : rows) {
            if (round.isOver()) {
                break;
            }
            boolean mayContinue = round.isHeldBack(row) || redrive(assignment, row, turn, round);
            if (!mayContinue) {
                return;
            }
        }
        turn.withoutPermit(() -> freeKeys(assignment));
        if (rows.size() == PAGE_EVENTS_MAX || round.isOver()) {
            assignment.requestRedrive();
        }
    }

    /** Adds a page of the events to redrive to the rows; returns whether they could be read. */
    private boolean read(Assignment assignment, List<Row> rows) {
        try {
            rows.addAll(shard.require()
                    .read(c ->
                            table.findToRedrive(c, assignment.consumerId(), assignment.partition(), PAGE_EVENTS_MAX)));
            return true;
        } catch (SQLException e) { // the next heartbeat requests it again
            LOG.warn(
                    "Reading events to redrive of {} failed; retrying after the next heartbeat: {}",
                    assignment.name(),
                    e.toString());
            return false;
        }
    }

    private boolean redrive(Assignment assignment, Row row, HandlerTurn turn, Round round) {
        if (row.isErased()) {
            return turn.withoutPermit(() -> removeErased(assignment, row));
        }
        StoredEvent parked = event(assignment, row);
        IllegalArgumentException undecodable = row.undecodable();
        if (undecodable == null) {
            return handle(assignment, parked, row, turn, round);
        }
        assignment
                .undecodable()
                .add(new UndecodableEventException(parked.position(), row.storedHeaders(), undecodable));
        try {
            return handle(assignment, parked, row, turn, round);
        } finally {
            assignment.undecodable().remove(row.offset(), row.offset() + 1);
        }
    }

    /** An erased event is not passed to the handler. */
    private boolean removeErased(Assignment assignment, Row row) {
        boolean removed = failures.commitWith(
                assignment,
                connection -> table.remove(connection, assignment.consumerId(), assignment.partition(), row.offset()),
                "that the erased event at offset " + row.offset() + " is no longer parked");
        if (removed) {
            erased.count(assignment, 1);
        }
        return removed;
    }

    private boolean handle(Assignment assignment, StoredEvent parked, Row row, HandlerTurn turn, Round round) {
        return attempts.handle(assignment, List.of(parked), turn, new Attempts.Outcome() {
            @Override
            public TransactionStep alsoCommit() {
                return connection -> {
                    if (!table.remove(connection, assignment.consumerId(), assignment.partition(), row.offset())) {
                        throw new SQLException("the event is no longer parked", SqlErrors.NOT_PARKED);
                    }
                };
            }

            @Override
            public boolean handled(Assignment of, StoredEvent first, StoredEvent last) {
                return turn.withoutPermit(() -> failures.commitWith(
                        assignment,
                        connection ->
                                table.remove(connection, assignment.consumerId(), assignment.partition(), row.offset()),
                        "that the parked event at offset " + row.offset() + " is handled"));
            }

            @Override
            public boolean failed(Assignment of, StoredEvent event, int count, Throwable error) {
                round.recordFailure(row);
                return failures.commitWith(
                        assignment,
                        connection -> table.recordFailure(
                                connection,
                                assignment.consumerId(),
                                assignment.partition(),
                                row,
                                ForeignErrors.text(error),
                                count),
                        "that the parked event at offset " + row.offset() + " failed again");
            }
        });
    }

    /**
     * Frees parked keys of which no event is parked any more. A further attempt cannot know by what it deletes whether
     * the first one was committed, so it reads which keys are still parked.
     */
    private void freeKeys(Assignment assignment) {
        int consumerId = assignment.consumerId();
        int partition = assignment.partition();
        int[] attempt = {0};
        List<String> freed = new ArrayList<>();
        TransactionStep free = connection -> {
            freed.clear();
            freed.addAll(table.freeKeys(connection, consumerId, partition));
            if (++attempt[0] > 1) {
                Set<String> gone = assignment.parkedKeys().copy();
                gone.removeAll(table.parkedKeys(connection, consumerId, List.of(partition))
                        .getOrDefault(partition, Set.of()));
                freed.addAll(gone);
            }
        };
        if (failures.commitWith(assignment, free, "which keys are no longer parked")) {
            assignment.parkedKeys().removeAll(freed);
        }
    }

    private StoredEvent event(Assignment assignment, Row row) {
        return new StoredEvent(
                new EventPosition(assignment.spec().stream(), shard.number(), row.partition(), row.offset()),
                row.key(),
                row.value(),
                row.headers(),
                row.publishedAt(),
                row.valueState());
    }
}
