package io.eventsql.internal.consume;

import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Commits steps together with the offset of their partition, and repeats them until they succeed, the partition ends or
 * the database refuses them. Every failed attempt is logged. Thread-safe.
 */
final class FencedSteps {
    private static final Logger LOG = LoggerFactory.getLogger(FencedSteps.class);
    private static final long RETRY_MIN_MS = 50;
    private static final long RETRY_MAX_MS = 1_000;
    private static final int RETRY_DOUBLINGS_MAX = 10;
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
     * @param refusal the error of a step that the database refuses, however often it is repeated
     */
    record Outcome(boolean isCommitted, @Nullable SQLException refusal) {
        private static final Outcome COMMITTED = new Outcome(true, null);
        private static final Outcome ENDED = new Outcome(false, null);
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
        int otherOffsets = 0;
        int protocolErrors = 0;
        for (int failures = 0; !assignment.hasEnded(); failures++) {
            long delayMs = Math.min(RETRY_MAX_MS, RETRY_MIN_MS << Math.min(failures, RETRY_DOUBLINGS_MAX));
            Thread.interrupted(); // left by a handler: it would break the connection
            try {
                step.prepare();
                if (committer.commitWith(assignment, first, next, step)) {
                    return Outcome.COMMITTED;
                }
                if (++otherOffsets == OTHER_OFFSETS_MAX && !assignment.hasEnded()) {
                    committer.lose(assignment, "its stored offset is not the one that this member has committed");
                }
                continue;
            } catch (SQLException e) {
                otherOffsets = 0;
                if (SqlErrors.state(e).equals(SqlErrors.PARTITION_TAKEN)) {
                    committer.lose(assignment, SqlErrors.message(e));
                    return Outcome.ENDED;
                }
                ErrorKind kind = SqlErrors.classify(e);
                protocolErrors += kind == ErrorKind.PROTOCOL ? 1 : 0;
                if (kind == ErrorKind.CONTENT || protocolErrors == PROTOCOL_ERRORS_MAX) {
                    return new Outcome(false, e);
                }
                if (kind == ErrorKind.PROTOCOL && deadLetters.remedy(assignment, e)) {
                    continue;
                }
                LOG.warn(
                        "Could not store {} of {}; retrying in {} ms: {}",
                        stored,
                        assignment.name(),
                        delayMs,
                        SqlErrors.message(e));
            }
            if (closeSignal.isClosingAfter(delayMs)) {
                return Outcome.ENDED;
            }
        }
        return Outcome.ENDED;
    }
}
