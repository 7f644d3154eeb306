package io.eventsql.internal.consume;

import io.eventsql.ConsumerListener.Reason;
import io.eventsql.ConsumerSpec;
import io.eventsql.FailurePolicy;
import io.eventsql.StoredEvent;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ParkedEventTable;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Applies the {@link FailurePolicy} of one member on one shard: dead-letters or parks events that could not be handled,
 * parks later events of parked keys, stops partitions. Storing that and advancing the offset are one fenced transaction.
 * Thread-safe.
 */
final class Failures {
    private static final Logger LOG = LoggerFactory.getLogger(Failures.class);
    private static final int ERROR_LENGTH_MAX = 4_000;
    private static final long RETRY_MIN_MS = 50;
    private static final long RETRY_MAX_MS = 1_000;
    /** A partition with more parked keys stops: they are kept in memory. */
    private static final int PARKED_KEYS_MAX = 100_000;

    /** Replaces an offset where no event is passed. */
    private static final long NO_EVENT = Long.MIN_VALUE;

    private static final String KEY_IS_PARKED = "its key is parked";

    private final Shard shard;
    private final ShardMember member;
    private final ConsumerSpec spec;
    private final OffsetCommitter committer;
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
        String text = text(error);
        @Nullable String key = event.key();
        if (spec.failurePolicy() == FailurePolicy.STOP) {
            stop(assignment, "offset " + event.offset() + ": " + text);
            return false;
        }
        if (spec.failurePolicy() == FailurePolicy.PARK_KEY && key != null) {
            return parkKey(assignment, event, key, attempts, error);
        }
        TransactionStep copy = deadLetters.copyStep(assignment, event, text, attempts);
        boolean done = pass(assignment, event, event, copy);
        if (done) {
            deadLetters.signalCopy(event.partition());
            LOG.warn("Dead-lettered event {} to {}: {}", event.position(), spec.deadLetterStream(), text);
            listeners.call(l -> l.deadLettered(event, spec.name(), attempts, error));
        }
        return done;
    }

    private boolean parkKey(Assignment assignment, StoredEvent event, String key, int attempts, Throwable error) {
        String text = text(error);
        if (assignment.parkedKeyCount() >= PARKED_KEYS_MAX) {
            stop(assignment, "offset " + event.offset() + ": " + PARKED_KEYS_MAX + " keys are parked; " + text);
            return false;
        }
        ParkedEventTable table = shard.tables().parkedEvents();
        boolean done = pass(assignment, event, event, connection -> {
            table.parkKey(connection, assignment.consumerId(), assignment.partition(), key);
            table.park(connection, assignment.consumerId(), List.of(event), text, attempts);
        });
        if (done) {
            assignment.parkKey(key);
            LOG.warn("Parked event {} and its key: {}", event.position(), text);
            listeners.call(l -> l.keyParked(event, spec.name(), attempts, error));
        }
        return done;
    }

    /**
     * Parks events whose keys are parked.
     *
     * @param events with gapless offsets
     * @return whether the next event may be handled
     */
    boolean parkFollowing(Assignment assignment, List<StoredEvent> events) {
        ParkedEventTable table = shard.tables().parkedEvents();
        return pass(
                assignment,
                events.getFirst(),
                events.getLast(),
                connection -> table.park(connection, assignment.consumerId(), events, KEY_IS_PARKED, 0));
    }

    /** Runs the step and advances the offset in one transaction, until it succeeds or the partition ends. */
    private boolean pass(Assignment assignment, StoredEvent first, StoredEvent last, TransactionStep step) {
        long next = last.offset() + 1;
        if (!commitWith(assignment, first.offset(), next, step, Failures::neverSucceeds)) {
            return false;
        }
        assignment.recordHandled(first.offset(), next);
        committer.request();
        return true;
    }

    /** Runs the step in a transaction that passes no event, and only proves that the partition is still owned. */
    boolean commitWith(Assignment assignment, TransactionStep step) {
        return commitWith(assignment, NO_EVENT, NO_EVENT, step, Failures::neverSucceeds);
    }

    private static boolean neverSucceeds(SQLException e) {
        return switch (SqlErrors.classify(e)) {
            case NOT_SENT, IN_DOUBT, ENVIRONMENT -> false;
            case CONTENT -> true;
            case PROTOCOL -> !SqlErrors.state(e).equals(SqlErrors.STALE_BATCH) && !SqlErrors.isMissingSegment(e);
        };
    }

    /** Retries until it succeeds or the partition ends. After a permanent error the partition is stopped. */
    private boolean commitWith(
            Assignment assignment, long first, long next, TransactionStep step, Predicate<SQLException> isPermanent) {
        for (int failures = 0; !assignment.hasEnded(); failures++) {
            long delayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS << Math.min(failures, 10));
            try {
                if (committer.commitWith(assignment, first, next, step)) {
                    return true;
                }
            } catch (SQLException e) {
                if (deadLetters.addMissingSegment(assignment.partition(), e)) {
                    continue;
                }
                if (isPermanent.test(e)) {
                    stop(assignment, "could not store the failed event: " + text(e));
                    return false;
                }
                LOG.warn(
                        "Could not store the failure of {}; retrying in {} ms: {}",
                        assignment.name(),
                        delayMs,
                        e.toString());
            }
            if (isClosingAfter(delayMs)) {
                return false;
            }
        }
        return false;
    }

    /** Stops the partition and stores why: its events are handled again when it is resumed. */
    void stop(Assignment assignment, String error) {
        long next = assignment.progress().toOffset();
        if (!assignment.beginStop()) {
            return;
        }
        TransactionStep store = connection -> shard.tables()
                .leases()
                .stop(connection, assignment.consumerId(), assignment.memberId(), assignment.partition(), error);
        if (commitWith(assignment, NO_EVENT, NO_EVENT, store, e -> false)) {
            LOG.error("Stopped {} at offset {}: {}", assignment.name(), next, error);
            listeners.call(l -> l.partitionStopped(assignment.name(), next, error));
            member.remove(assignment, Reason.STOPPED);
        } else {
            assignment.abortStop();
        }
    }

    private boolean isClosingAfter(long delayMs) {
        try {
            return closeSignal.isClosingAfter(delayMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return true;
        }
    }

    static String text(Throwable error) {
        String text = error.toString();
        return text.length() <= ERROR_LENGTH_MAX ? text : text.substring(0, ERROR_LENGTH_MAX);
    }
}
