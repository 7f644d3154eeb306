package io.eventsql.internal.append;

import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.PartialPublishException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Combines the outcomes of the parts of one {@code publishAll}. Thread-safe. */
final class PublishAllOutcome {
    private final @Nullable EventPosition[] positions;
    private final @Nullable EventSqlException[] failures;
    private final AtomicInteger openParts;
    private final boolean callerWaits;
    private final Executor continuations;
    private final CompletableFuture<List<EventPosition>> future = new CompletableFuture<>();

    /**
     * @param callerWaits whether nothing but the caller's thread is attached to the future
     * @param continuations completes the future otherwise, if the last part fails
     */
    PublishAllOutcome(int events, int parts, boolean callerWaits, Executor continuations) {
        this.callerWaits = callerWaits;
        this.continuations = continuations;
        positions = new EventPosition[events];
        failures = new EventSqlException[events];
        openParts = new AtomicInteger(parts);
    }

    CompletableFuture<List<EventPosition>> future() {
        return future;
    }

    /** Returns the callbacks for one part; {@code indexes} are the indexes of its events in the call. */
    PublishCall.Outcome forPart(int[] indexes) {
        return new PublishCall.Outcome() {
            @Override
            public void stored(EventPosition[] positionsOfPart, Executor continuationsOfBatch) {
                for (int i = 0; i < indexes.length; i++) {
                    positions[indexes[i]] = positionsOfPart[i];
                }
                partDone(continuationsOfBatch);
            }

            @Override
            public void failed(EventSqlException failure) {
                for (int index : indexes) {
                    failures[index] = failure;
                }
                partDone(continuations);
            }

            @Override
            public List<PublishCall.Outcome> divide(List<int[]> indexesOfParts) {
                openParts.addAndGet(indexesOfParts.size() - 1);
                return indexesOfParts.stream()
                        .map(part ->
                                forPart(Arrays.stream(part).map(i -> indexes[i]).toArray()))
                        .toList();
            }
        };
    }

    /** The atomic counter orders the writes of all parts before the reads of the last one. */
    private void partDone(Executor executor) {
        if (openParts.decrementAndGet() > 0) {
            return;
        }
        if (callerWaits) {
            complete();
        } else {
            executor.execute(this::complete);
        }
    }

    private void complete() {
        List<EventPosition> stored = new ArrayList<>(positions.length);
        for (EventPosition position : positions) {
            if (position != null) {
                stored.add(position);
            }
        }
        if (stored.size() == positions.length) {
            future.complete(stored);
        } else {
            future.completeExceptionally(failure(stored.size()));
        }
    }

    private EventSqlException failure(int stored) {
        List<PartialPublishException.Outcome> outcomes = new ArrayList<>(positions.length);
        @Nullable EventSqlException first = null;
        boolean sameFailure = true;
        for (int i = 0; i < positions.length; i++) {
            EventSqlException failure = failures[i];
            outcomes.add(new PartialPublishException.Outcome(positions[i], failure));
            if (failure != null) {
                sameFailure &= first == null || first.getClass() == failure.getClass();
                first = first == null ? failure : first;
            }
        }
        EventSqlException reason = Objects.requireNonNull(first, "an event without a position has a failure");
        if (stored == 0 && sameFailure) {
            return reason;
        }
        return new PartialPublishException(
                stored + " of " + positions.length + " events are stored; the first failure: " + reason.getMessage(),
                outcomes,
                reason);
    }
}
