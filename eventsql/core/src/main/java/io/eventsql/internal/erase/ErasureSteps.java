package io.eventsql.internal.erase;

import io.eventsql.ErasureSpec;
import io.eventsql.EventSqlException;
import io.eventsql.internal.sql.ErrorKind;
import io.eventsql.internal.sql.SqlErrors;
import java.sql.SQLException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Repeats the steps of one call, with pauses, and remembers what they wait for. A step that fails because of another
 * transaction or a connection was rolled back, so it waits like one that finds something in its way. Used by one thread.
 */
final class ErasureSteps {
    /** Grows, because a step may make others queue behind a lock for a moment. */
    private static final Duration RETRY_MIN = Duration.ofMillis(50);

    private static final Duration RETRY_MAX = Duration.ofSeconds(1);

    private final ErasureSpec spec;
    private final String failure;
    /** What the last steps wait for, by database. */
    private final Map<String, String> reasons = new LinkedHashMap<>();

    private Duration retry = RETRY_MIN;
    /** The last time at which a step was not in the way of anything: the timeout limits the time without progress. */
    private long progressNanos = System.nanoTime();

    ErasureSteps(ErasureSpec spec, String failure) {
        this.spec = spec;
        this.failure = failure;
    }

    /** The result of one step. */
    record Step(boolean isDone, boolean isWaiting, @Nullable String reason) {}

    /** Returns the maximum number of events of a step. */
    int size() {
        return spec.stepEvents();
    }

    /** Repeats a step until nothing is left to do, or until something is in its way. */
    void repeat(String database, Eraser.Work<Step> step) {
        reasons.remove(database);
        while (true) {
            Step result;
            try {
                result = step.run();
            } catch (SQLException e) {
                requireTemporary(database, e);
                reasons.put(database, SqlErrors.message(e));
                return;
            }
            if (result.isDone()) {
                return;
            }
            if (result.isWaiting()) {
                reasons.put(database, result.reason() == null ? "another transaction" : result.reason());
                return;
            }
            progressed();
            pause(spec.pause());
        }
    }

    private void progressed() {
        progressNanos = System.nanoTime();
        retry = RETRY_MIN;
    }

    /** Runs a statement, again if another transaction is in its way, at most until the timeout. */
    <T> T retried(Eraser.Work<T> work) throws SQLException {
        while (true) {
            try {
                return work.run();
            } catch (SQLException e) {
                if (SqlErrors.classify(e) != ErrorKind.ENVIRONMENT || !mayWaitOn()) {
                    throw e;
                }
            }
        }
    }

    private void requireTemporary(String database, SQLException e) {
        if (SqlErrors.state(e).equals(SqlErrors.NO_ERASURE)) {
            throw replaced(e);
        }
        ErrorKind kind = SqlErrors.classify(e);
        if (kind == ErrorKind.CONTENT || kind == ErrorKind.PROTOCOL) {
            throw new EventSqlException(
                    failure + " failed in " + database + "; what is erased stays erased: " + SqlErrors.message(e), e);
        }
    }

    /** Returns the error of an erasure that is no longer recorded. */
    EventSqlException replaced(@Nullable SQLException cause) {
        return new EventSqlException(
                failure
                        + " has ended: a later call for the same key has replaced it, and erases what is left, or the stream"
                        + " was deleted",
                cause);
    }

    boolean isWaiting() {
        return !reasons.isEmpty();
    }

    /** Waits before the next round; returns {@code false} if the timeout has passed since the last progress. */
    boolean mayWaitOn() {
        if (System.nanoTime() - progressNanos >= spec.timeout().toNanos()) {
            return false;
        }
        pause(retry);
        retry = retry.multipliedBy(2).compareTo(RETRY_MAX) < 0 ? retry.multipliedBy(2) : RETRY_MAX;
        return true;
    }

    Map<String, String> reasons() {
        return reasons;
    }

    private void pause(Duration time) {
        try {
            TimeUnit.MILLISECONDS.sleep(time.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new EventSqlException(failure + " was interrupted; repeat the call to continue", e);
        }
    }
}
