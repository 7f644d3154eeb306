package io.eventsql.internal.consume;

import io.eventsql.UnknownStreamException;
import io.eventsql.internal.consume.OffsetCommitter.Commit;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.SqlErrors;
import io.eventsql.internal.thread.FailureSeries;
import io.eventsql.internal.thread.FailureSeries.Failure;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits steps together with the offset of their partition, and repeats them until they succeed, the partition ends or
 * the database refuses them. If the database has another incarnation than the one in which the partition was taken, they
 * wait until the lease keeper lets the partition continue, or ends it. Of a series of failures each reason is logged once,
 * and at its end their number. Thread-safe.
 */
final class FencedSteps {
    private static final Logger LOG = LoggerFactory.getLogger(FencedSteps.class);
    /** Attempts after errors of the protocol, such as a missing segment: something removes their cause in between. */
    private static final int PROTOCOL_ERRORS_MAX = 5;
    /**
     * Attempts that find another stored offset. After the first one the stored offset is read, because the answer to an
     * earlier commit may have been lost; then the second one fits, or the partition was moved without a new epoch.
     */
    private static final int OTHER_OFFSETS_MAX = 2;
    /** Replaces an offset where no event is passed. */
    private static final long NO_EVENT = Long.MIN_VALUE;

    private final OffsetCommitter committer;
    private final DeadLetters deadLetters;
    private final CloseSignal closeSignal;

    FencedSteps(OffsetCommitter committer, DeadLetters deadLetters, CloseSignal closeSignal) {
        this.committer = committer;
        this.deadLetters = deadLetters;
        this.closeSignal = closeSignal;
    }

    /**
     * The outcome of a step. It is neither committed nor refused if the partition has ended or the member closes.
     *
     * @param isPassed whether the events are passed
     * @param isStored whether the step is stored; it is not if the events were handled after all: the answer to their commit was lost
     * @param refusal the error of a step that the database refuses, however often it is repeated, or whose stream no longer
     *     exists
     */
    record Outcome(
            boolean isPassed, boolean isStored, @Nullable SQLException refusal) {
        private static final Outcome STORED = new Outcome(true, true, null);
        private static final Outcome HANDLED_BEFORE = new Outcome(true, false, null);
        private static final Outcome ENDED = new Outcome(false, false, null);

        private static Outcome refused(SQLException refusal) {
            return new Outcome(false, false, refusal);
        }
    }

    /** Runs the step in a transaction that passes no event, and only proves that the partition is still owned. */
    Outcome commit(Assignment assignment, TransactionStep step, String stored) {
        return commit(assignment, NO_EVENT, NO_EVENT, step, stored);
    }

    /**
     * Runs the step in a transaction that passes events.
     *
     * @param first the offset of the first event that counts as handled with it
     * @param next the offset after the last one
     * @param stored what the step stores, for messages
     */
    Outcome commit(Assignment assignment, long first, long next, TransactionStep step, String stored) {
        FailureSeries failures = new FailureSeries();
        Outcome outcome = repeat(assignment, first, next, step, stored, failures);
        int failed = failures.end();
        if (failed > 0 && outcome.isStored()) {
            LOG.info("Stored {} of {} after {} failed attempts", stored, assignment.name(), failed);
        } else if (failed > 0 && !outcome.isPassed()) {
            LOG.warn(
                    "Did not store {} of {} in {} attempts, because the partition stops, is released or was lost",
                    stored,
                    assignment.name(),
                    failed);
        }
        return outcome;
    }

    private Outcome repeat(
            Assignment assignment, long first, long next, TransactionStep step, String stored, FailureSeries failures) {
        int otherOffsets = 0;
        int protocolErrors = 0;
        boolean mayBeStored = false;
        while (!assignment.hasEnded()) {
            long retryMs;
            Thread.interrupted(); // left by a handler: it would break the connection
            try {
                step.prepare();
                Commit commit = committer.commitWith(assignment, first, next, step);
                if (commit == Commit.STORED || commit == Commit.PASSED_BEFORE) {
                    return commit == Commit.STORED || mayBeStored ? Outcome.STORED : Outcome.HANDLED_BEFORE;
                }
                if (commit == Commit.REFUSED) {
                    if (++otherOffsets == OTHER_OFFSETS_MAX && !assignment.hasEnded()) {
                        committer.lose(assignment, "its stored offset is not the one that this member has committed");
                    }
                    continue;
                }
                otherOffsets = 0;
                retryMs = failures.add("another incarnation").retryMs();
                LOG.debug(
                        "{} of {} waits until the partition continues in the database's other incarnation, or ends",
                        stored,
                        assignment.name());
            } catch (UnknownStreamException e) { // the dead-letter stream was deleted
                return Outcome.refused(new SQLException(e.getMessage(), e));
            } catch (SQLException e) {
                otherOffsets = 0;
                if (SqlErrors.state(e).equals(SqlErrors.PARTITION_TAKEN)) {
                    committer.lose(assignment, SqlErrors.message(e));
                    return Outcome.ENDED;
                }
                ErrorKind kind = SqlErrors.classify(e);
                mayBeStored |= kind == ErrorKind.IN_DOUBT;
                protocolErrors += kind == ErrorKind.PROTOCOL ? 1 : 0;
                if (kind == ErrorKind.CONTENT || protocolErrors == PROTOCOL_ERRORS_MAX) {
                    return Outcome.refused(e);
                }
                if (kind == ErrorKind.PROTOCOL && deadLetters.remedy(assignment, e)) {
                    continue;
                }
                retryMs = report(failures.add(SqlErrors.message(e)), assignment, stored, e);
            }
            if (closeSignal.isClosingAfter(retryMs)) {
                return Outcome.ENDED;
            }
        }
        return Outcome.ENDED;
    }

    /** Returns the pause before the next attempt. */
    private static long report(Failure failure, Assignment assignment, String stored, SQLException e) {
        if (failure.isNew()) {
            LOG.warn(
                    "Could not store {} of {}; retrying in {} ms: {}",
                    stored,
                    assignment.name(),
                    failure.retryMs(),
                    SqlErrors.message(e));
        } else {
            LOG.debug(
                    "Could not store {} of {} again; retrying in {} ms",
                    stored,
                    assignment.name(),
                    failure.retryMs(),
                    e);
        }
        return failure.retryMs();
    }
}
