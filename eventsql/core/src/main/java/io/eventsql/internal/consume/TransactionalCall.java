package io.eventsql.internal.consume;

import io.eventsql.StoredEvent;
import io.eventsql.TransactionalEventBatchHandler;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.Database;
import io.eventsql.internal.sql.MissingPrivilegeException;
import io.eventsql.internal.sql.NetworkTimeout;
import io.eventsql.internal.sql.OffsetTable;
import io.eventsql.internal.sql.OffsetTable.Handled;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;

/**
 * Exactly once: what the handler writes and the offset are committed together. The fenced commit of the offset is the
 * transaction's last statement: a former owner learns by it that it has lost the partition, and everything is rolled
 * back.
 *
 * <p>An owner that is frozen in its transaction keeps locks. The member that takes the partition ends that transaction;
 * where its role does not permit that, the server ends it when nothing was sent for the handler's time-out, or for the
 * lease once the offset is committed in it.
 *
 * @param lease bounds the silence between the offset's commit and the transaction's
 */
record TransactionalCall(
        boolean takesBatches,
        TransactionalEventBatchHandler handler,
        HandlerTransactions transactions,
        Duration lease,
        Shard shard,
        OffsetCommitter committer)
        implements HandlerCall {
    /** Whose statements run in a handler's transaction: a failure is the handler's only during its own. */
    private enum Statements {
        OF_HANDLER,
        /** Those that are committed with the handler's effects. */
        OF_OUTCOME,
        OF_COMMIT
    }

    /** How far one transaction has come. */
    private static final class Progress {
        private Statements running = Statements.OF_HANDLER;

        private boolean isOfLibrary() {
            return running != Statements.OF_HANDLER;
        }

        private boolean hasBegunCommit() {
            return running == Statements.OF_COMMIT;
        }
    }

    @Override
    public boolean isTransactional() {
        return true;
    }

    @Override
    public void call(Assignment assignment, List<StoredEvent> events, TransactionStep alsoCommit) throws Exception {
        long first = events.getFirst().offset();
        long next = events.getLast().offset() + 1;
        boolean isRedrive = isRedrive(alsoCommit); // the offset was passed when they were parked
        if (assignment.isCommitInDoubt()) {
            readStored(assignment);
        }
        if (!isRedrive && next <= assignment.committedOffset()) {
            return; // an earlier commit, whose answer was lost, was stored
        }
        if (!isRedrive && assignment.committedOffset() < first) {
            commitPassed();
        }
        Progress progress = new Progress();
        try {
            // From these events' own offset: what is known to be committed may change at any moment.
            Handled handled = isRedrive
                    ? assignment.progress()
                    : new Handled(assignment.partition(), assignment.epoch(), first, next, events.size());
            boolean committed = transactions.run(
                    shard, connection -> handle(connection, assignment, events, handled, alsoCommit, progress));
            if (committed) {
                assignment.recordCommitted(handled.toOffset());
                assignment.setCommitInDoubt(false);
                return;
            }
        } catch (Exception e) {
            if (e instanceof SQLException sql && SqlErrors.state(sql).equals(SqlErrors.NOT_PARKED)) {
                assignment.setCommitInDoubt(false);
                return; // redriven already: everything was rolled back
            }
            boolean isOfHandler = !progress.isOfLibrary() && !(e instanceof SQLException);
            if (isOfHandler && !assignment.isCommitInDoubt()) {
                throw e;
            }
            if (SqlErrors.isOtherIncarnation(e)) {
                recheckIncarnation(e, assignment);
                throw new NotHandledException("everything was rolled back: " + e.getMessage(), e);
            }
            boolean isUnavailable =
                    e instanceof Database.UnavailableException || (progress.isOfLibrary() && isOfCondition(e));
            if (progress.hasBegunCommit() && isUnavailable) {
                // The server may commit it even after the next statement has read the offset.
                assignment.setCommitInDoubt(true);
            }
            boolean mayBeStored = progress.hasBegunCommit() || assignment.isCommitInDoubt();
            if (mayBeStored && !isRedrive && reconcileAfter(e, assignment, next)) {
                assignment.setCommitInDoubt(false);
                return;
            }
            requireOwned(assignment);
            if (isUnavailable) {
                throw new NotHandledException("database unavailable: " + e.getMessage(), e);
            }
            if (progress.isOfLibrary()
                    && e instanceof SQLException sql
                    && MissingPrivilegeException.isMissingPrivilege(sql)) {
                throw new NotHandledException("the offset could not be committed: " + e.getMessage(), e);
            }
            throw e;
        }
        // Refused: the partition is lost, or an earlier commit, whose answer was lost, was stored.
        committer.reconcile();
        requireOwned(assignment);
        if (isRedrive || assignment.committedOffset() < next) {
            throw new NotHandledException(
                    "the offset had changed, everything was rolled back", new SQLException("commit refused", "40001"));
        }
    }

    private static boolean isRedrive(TransactionStep alsoCommit) {
        return !alsoCommit.equals(TransactionStep.NONE);
    }

    /** Runs the transaction up to its commit; returns whether to commit. */
    private boolean handle(
            Connection connection,
            Assignment assignment,
            List<StoredEvent> events,
            Handled handled,
            TransactionStep alsoCommit,
            Progress progress)
            throws Exception {
        String token = UUID.randomUUID().toString();
        beginHandling(connection, assignment, token);
        boolean isInDoubt = isRedrive(alsoCommit) && assignment.isCommitInDoubt();
        if (isInDoubt) {
            // The offset says nothing about an earlier attempt, but the parked event does: removing it waits for that
            // attempt, finds no event if it was committed, and proves that it was rolled back if there is one.
            run(alsoCommit, connection, progress);
            assignment.setCommitInDoubt(false);
        }
        progress.running = Statements.OF_HANDLER;
        callHandler(assignment, events, connection);
        Thread.interrupted(); // left by the handler: it would close the connection
        if (isRedrive(alsoCommit) && !isInDoubt) {
            run(alsoCommit, connection, progress);
        }
        progress.running = Statements.OF_COMMIT;
        return shard.tables()
                .offsets()
                .commitHandled(
                        connection,
                        assignment.incarnation(),
                        assignment.consumerId(),
                        handled,
                        token,
                        lease.toMillis());
    }

    private void run(TransactionStep alsoCommit, Connection connection, Progress progress) throws SQLException {
        progress.running = Statements.OF_OUTCOME;
        shard.require().runInHandlerTransaction(connection, c -> {
            alsoCommit.run(c);
            return alsoCommit;
        });
    }

    /** Reads the stored offset: a commit whose answer was lost may be stored, and the handler would fail because of its own effects. */
    private void readStored(Assignment assignment) throws NotHandledException, LostException {
        try {
            committer.reconcile();
        } catch (SQLException e) {
            throw new NotHandledException(
                    "whether the last commit is stored could not be determined: " + e.getMessage(), e);
        }
        requireOwned(assignment);
    }

    /** Returns whether a commit failed because of the condition of the database or of the connection to it. */
    private static boolean isOfCondition(Exception e) {
        return e instanceof SQLException sql
                && !SqlErrors.isTransactionTimeout(sql) // which only the handler can have set
                && switch (SqlErrors.classify(sql)) {
                    case NOT_SENT, IN_DOUBT, ENVIRONMENT -> true;
                    case CONTENT, PROTOCOL -> false;
                };
    }

    /** Commits the offsets before the events that have no event to be handled, because compaction has removed it. */
    private void commitPassed() throws NotHandledException {
        try {
            committer.commit();
        } catch (SQLException e) {
            throw new NotHandledException("the offset could not be committed: " + e.getMessage(), e);
        }
    }

    private void recheckIncarnation(Exception rejected, Assignment assignment) {
        try {
            committer.isOfOtherIncarnation(rejected, assignment.incarnation());
        } catch (SQLException e) {
            rejected.addSuppressed(e); // the next statement on the shard does it
        }
    }

    /**
     * The handler's own statements may take as long as the handler. The network timeout is longer by the lease, so that
     * the lease keeper reports a handler that exceeds its timeout before the timeout aborts its statement.
     */
    private void callHandler(Assignment assignment, List<StoredEvent> events, Connection connection) throws Exception {
        Duration longest = assignment.spec().handlerTimeout().plus(lease);
        NetworkTimeout limit = NetworkTimeout.set(connection, longest);
        try (limit) {
            handler.handle(events, HandlerConnection.guard(connection));
        }
    }

    private static void requireOwned(Assignment assignment) throws LostException {
        if (assignment.hasEnded()) {
            throw new LostException("lost while its events were handled, everything was rolled back");
        }
    }

    private void beginHandling(Connection connection, Assignment assignment, String token)
            throws SQLException, NotHandledException {
        OffsetTable offsets = shard.tables().offsets();
        int consumerId = assignment.consumerId();
        long idleMs = assignment.spec().handlerTimeout().toMillis();
        if (!transactions.areForeign()) {
            offsets.beginHandling(connection, consumerId, assignment.partition(), token, idleMs);
            return;
        }
        boolean isShard;
        try {
            isShard = offsets.beginHandlingOn(
                    shard.clusterId(), shard.number(), connection, consumerId, assignment.partition(), token, idleMs);
        } catch (SQLException e) { // such as that of a database without the tables
            throw new NotHandledException("could not begin the transaction on " + shard + ": " + e.getMessage(), e);
        }
        if (!isShard) {
            throw new NotHandledException(
                    "the transaction boundary gave a connection to a database other than that of " + shard);
        }
    }

    /** After a commit that failed: reads the stored offset and returns whether it was stored nevertheless. */
    private boolean reconcileAfter(Exception failure, Assignment assignment, long next) {
        try {
            committer.reconcile();
        } catch (SQLException e) {
            failure.addSuppressed(e); // the next attempt reads it
            return false;
        }
        return assignment.committedOffset() >= next;
    }
}
