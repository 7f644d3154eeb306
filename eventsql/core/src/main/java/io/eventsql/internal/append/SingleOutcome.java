package io.eventsql.internal.append;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * The outcome of a call with one event: one object that is the caller's future, too, and the task that completes it, because
 * many such calls may wait. Thread-safe.
 */
final class SingleOutcome extends CompletableFuture<EventPosition> implements PublishCall.Outcome, Runnable {
    private final boolean callerWaits;
    private final Executor continuations;
    /** Written before this task is passed to an executor. */
    private @Nullable EventPosition stored;

    /**
     * @param callerWaits whether nothing but the caller's thread is attached to the future
     * @param continuations completes the future otherwise, if the call fails
     */
    SingleOutcome(boolean callerWaits, Executor continuations) {
        this.callerWaits = callerWaits;
        this.continuations = continuations;
    }

    @Override
    public void stored(EventPosition[] positions, Executor continuationsOfBatch) {
        if (callerWaits) {
            complete(positions[0]);
        } else {
            stored = positions[0];
            continuationsOfBatch.execute(this);
        }
    }

    @Override
    public void failed(EventSqlException failure) {
        if (callerWaits) {
            completeExceptionally(failure);
        } else {
            continuations.execute(() -> completeExceptionally(failure));
        }
    }

    /** Completes the future of an event that is stored. */
    @Override
    public void run() {
        complete(Objects.requireNonNull(stored));
    }
}
