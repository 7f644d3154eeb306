package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.FailurePolicy;
import io.eventsql.StoredEvent;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.OffsetRange;
import io.eventsql.internal.sql.ParkedEventTable;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.ForeignErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Applies the {@link FailurePolicy} of one member on one shard: dead-letters or parks events that could not be handled,
 * parks later events of parked keys, stops partitions. Storing that and advancing the offset are one fenced transaction,
 * which {@link FencedSteps} repeats until it succeeds. An event that the database refuses to store stops the partition.
 * Thread-safe.
 */
final class Failures {
    private static final Logger LOG = LoggerFactory.getLogger(Failures.class);
    /** The delay before a partition is released after an error of this process: its next owner may be this process. */
    private static final long ABORT_DELAY_MS = 1_000;
    /** A partition with more parked keys stops: they are kept in memory. */
    private static final int PARKED_KEYS_MAX = 100_000;

    private static final String KEY_IS_PARKED = "its key is parked";

    private final Shard shard;
    private final ShardMember member;
    private final ConsumerSpec spec;
    private final OffsetCommitter committer;
    private final FencedSteps steps;
    private final DeadLetters deadLetters;
    private final Listeners listeners;
    private final CloseSignal closeSignal;

    Failures(
            Shard shard,
            ShardMember member,
            OffsetCommitter committer,
            DeadLetters deadLetters,
            Listeners listeners,
            CloseSignal closeSignal) {
        this.shard = shard;
        this.member = member;
        this.spec = member.spec();
        this.committer = committer;
        this.steps = new FencedSteps(committer, deadLetters, closeSignal);
        this.deadLetters = deadLetters;
        this.listeners = listeners;
        this.closeSignal = closeSignal;
    }

    /**
     * Applies the failure policy to an event.
     *
     * @return whether the next event may be handled
     */
    boolean apply(Assignment assignment, StoredEvent event, int attempts, Throwable error) {
        String text = ForeignErrors.text(error);
        @Nullable String key = event.key();
        if (spec.failurePolicy() == FailurePolicy.STOP) {
            stop(assignment, "offset " + event.offset() + ": " + text);
            return false;
        }
        if (spec.failurePolicy() == FailurePolicy.PARK_KEY && key != null) {
            return parkKey(assignment, event, key, attempts, error);
        }
        DeadLetters.CopyStep copy = deadLetters.copyStep(assignment, event, text, attempts);
        FencedSteps.Outcome outcome =
                pass(assignment, event, event, copy, "the dead letter of offset " + event.offset());
        if (outcome.isStored() && copy.isErased()) {
            reportErased(assignment, 1);
        } else if (outcome.isStored()) {
            deadLetters.signalCopy(event.partition());
            LOG.warn("Dead-lettered event {} to {}: {}", event.position(), spec.deadLetterStream(), text);
            listeners.call(l -> l.deadLettered(event, spec.name(), attempts, error));
        }
        return outcome.isPassed();
    }

    private boolean parkKey(Assignment assignment, StoredEvent event, String key, int attempts, Throwable error) {
        String text = ForeignErrors.text(error);
        if (assignment.parkedKeys().size() >= PARKED_KEYS_MAX) {
            stop(assignment, "offset " + event.offset() + ": " + PARKED_KEYS_MAX + " keys are parked; " + text);
            return false;
        }
        ParkStep park = new ParkStep(assignment, List.of(event), text, attempts);
        FencedSteps.Outcome outcome =
                pass(assignment, event, event, park, "the parked event at offset " + event.offset());
        if (outcome.isStored() && park.erased > 0) {
            reportErased(assignment, park.erased);
        } else if (outcome.isStored()) {
            assignment.parkedKeys().add(key);
            LOG.warn("Parked event {} and its key: {}", event.position(), text);
            listeners.call(l -> l.keyParked(event, spec.name(), attempts, error));
        }
        return outcome.isPassed();
    }

    /**
     * Parks events whose keys are parked.
     *
     * @param events with gapless offsets
     * @return whether the next event may be handled
     */
    boolean parkFollowing(Assignment assignment, List<StoredEvent> events) {
        StoredEvent first = events.getFirst();
        StoredEvent last = events.getLast();
        ParkStep park = new ParkStep(assignment, events, KEY_IS_PARKED, 0);
        FencedSteps.Outcome outcome = pass(
                assignment,
                first,
                last,
                park,
                "the events of parked keys at offsets " + first.offset() + " to " + last.offset());
        if (outcome.isStored() && park.erased > 0) {
            reportErased(assignment, park.erased);
        }
        return outcome.isPassed();
    }

    private void reportErased(Assignment assignment, int events) {
        LOG.info("{}: {} events were erased after they were fetched; they are not parked", assignment.name(), events);
        listeners.call(l -> l.eventsErased(assignment.name(), events));
    }

    /** Parks events and their keys, whichever of them are parked already, but no event that was erased. */
    private final class ParkStep implements TransactionStep {
        private final Assignment assignment;
        private final List<StoredEvent> events;
        private final String text;
        private final int attempts;
        private int erased;

        ParkStep(Assignment assignment, List<StoredEvent> events, String text, int attempts) {
            this.assignment = assignment;
            this.events = events;
            this.text = text;
            this.attempts = attempts;
        }

        @Override
        public void run(Connection connection) throws SQLException {
            ParkedEventTable table = shard.tables().parkedEvents();
            Set<Long> gone = shard.tables()
                    .erasures()
                    .erasedOffsets(
                            connection,
                            assignment.streamId(),
                            assignment.partition(),
                            events.stream().map(StoredEvent::offset).toList());
            List<StoredEvent> left = events.stream()
                    .filter(event -> !gone.contains(event.offset()))
                    .toList();
            erased = events.size() - left.size();
            Set<String> keys = new LinkedHashSet<>();
            for (StoredEvent event : left) {
                keys.add(Objects.requireNonNull(event.key()));
            }
            table.parkKeys(connection, assignment.consumerId(), assignment.partition(), keys);
            table.park(
                    connection, assignment.consumerId(), left, assignment.undecodable()::headersJson, text, attempts);
        }
    }

    /**
     * Advances the offset past events that are missing from the log.
     *
     * @param next the offset after the missing events
     * @return whether the next event may be handled
     */
    boolean passMissing(Assignment assignment, long first, long next) {
        assignment.recordMissing(first, next);
        return pass(assignment, first, next, TransactionStep.NONE, "the offset after missing events")
                .isPassed();
    }

    private FencedSteps.Outcome pass(
            Assignment assignment, StoredEvent first, StoredEvent last, TransactionStep step, String stored) {
        return pass(assignment, first.offset(), last.offset() + 1, step, stored);
    }

    /** Passes ranges that compaction has left without events. Their offsets are committed with those of handled events. */
    void passCompacted(Assignment assignment, List<OffsetRange> ranges) {
        assignment.recordCompacted(ranges);
        committer.request();
    }

    /** Runs the step and advances the offset in one transaction, until it succeeds or the partition ends. */
    private FencedSteps.Outcome pass(
            Assignment assignment, long first, long next, TransactionStep step, String stored) {
        FencedSteps.Outcome outcome = steps.commit(assignment, first, next, step, stored);
        stopIfRefused(assignment, stored, outcome);
        if (outcome.isPassed()) {
            assignment.recordHandled(first, next);
            committer.request();
        }
        if (outcome.isPassed() && !outcome.isStored()) {
            LOG.info(
                    "{}: {} was not stored: it was handled after all, but the answer to its commit was lost",
                    assignment.name(),
                    stored);
        }
        return outcome;
    }

    /**
     * Runs the step in a transaction that passes no event, and only proves that the partition is still owned.
     *
     * @param stored what the step stores, for messages
     */
    boolean commitWith(Assignment assignment, TransactionStep step, String stored) {
        FencedSteps.Outcome outcome = steps.commit(assignment, step, stored);
        stopIfRefused(assignment, stored, outcome);
        return outcome.isStored();
    }

    private void stopIfRefused(Assignment assignment, String stored, FencedSteps.Outcome outcome) {
        @Nullable SQLException refusal = outcome.refusal();
        if (refusal != null) {
            stop(assignment, "the database refused " + stored + ": " + SqlErrors.message(refusal));
        }
    }

    /** Stops the partition and stores why: its events are handled again when it is resumed. */
    void stop(Assignment assignment, String error) {
        long next = assignment.progress().toOffset();
        if (!assignment.beginStop()) {
            return;
        }
        TransactionStep store = connection -> {
            boolean owned = shard.tables()
                    .leases()
                    .stop(connection, assignment.consumerId(), assignment.memberId(), assignment.partition(), error);
            if (!owned) {
                throw new SQLException("the partition has another owner", SqlErrors.PARTITION_TAKEN);
            }
        };
        for (boolean again = true; again; ) {
            FencedSteps.Outcome outcome = steps.commit(assignment, store, "that it stops (" + error + ")");
            again = outcome.refusal() != null && !closeSignal.isClosingAfter(ABORT_DELAY_MS);
            if (again) {
                LOG.error(
                        "{} cannot be stopped at offset {}, because the database refuses to store that; retrying. It"
                                + " stops because of: {}",
                        assignment.name(),
                        next,
                        error,
                        outcome.refusal());
            } else if (outcome.isStored()) {
                LOG.error("Stopped {} at offset {}: {}", assignment.name(), next, error);
                listeners.call(l -> l.partitionStopped(assignment.name(), next, error));
                member.remove(assignment, Reason.STOPPED);
            }
        }
        assignment.abortStop();
    }

    /**
     * Ends the assignment after an unexpected error of this process. An exception stops the partition, because it would
     * be repeated; an {@link Error}, such as too little memory, releases it after a delay, and its next owner continues.
     * Never throws: the thread that calls it ends in order.
     */
    void abort(Assignment assignment, Throwable error) {
        try {
            if (error instanceof Error) {
                assignment.drain(); // first, because it needs no memory
                LOG.error("Handling {} failed with an error of this process; releasing it", assignment.name(), error);
            } else {
                LOG.error("Internal error while handling {}; stopping it", assignment.name(), error);
                stop(assignment, "internal error: " + ForeignErrors.text(error));
            }
        } catch (Throwable again) {
            assignment.drain();
            assignment.abortStop();
            error.addSuppressed(again);
        }
        if (error instanceof Error) {
            closeSignal.isClosingAfter(ABORT_DELAY_MS);
        }
    }
}
