package io.eventsql.internal.append;

import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.internal.append.EventValidator.Valid;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The events of one publish call for one shard: they are committed together or not at all. Completed exactly once, by the
 * batch that stored it, by its deadline, or when the publisher is closed, whichever comes first. Thread-safe.
 */
final class PublishCall {
    /** Callbacks for the outcome of the call; exactly one of them is called. */
    interface Outcome {
        /** Called after the commit, with one position for each event in the order of the call. */
        void stored(EventPosition[] positions);

        /** Called with an {@link EventNotStoredException} or an {@link EventOutcomeUnknownException}. */
        void failed(EventSqlException failure);
    }

    /** The {@link #partitions} of a call whose events have no key: the batch chooses one partition for all of them. */
    static final int[] ANY_PARTITION = {};

    private final StreamSpec stream;
    private final List<Valid> events;
    private final int[] partitions;
    private final boolean anyPartition;
    private final int bytes;
    private final long deadlineNanos;
    private final Outcome outcome;
    private final AtomicReference<State> state = new AtomicReference<>(State.WAITING);
    /** Orders the calls of one shard; assigned when the call enters the queue. */
    private long sequence;

    private enum State {
        /** Never sent to the database. */
        WAITING,
        /** Sent at least once: its outcome is unknown until the database responds. */
        SENT,
        COMPLETED
    }

    /**
     * @param partitions one for each event, or {@link #ANY_PARTITION}
     * @param deadlineNanos as {@link System#nanoTime()}
     */
    PublishCall(StreamSpec stream, List<Valid> events, int[] partitions, long deadlineNanos, Outcome outcome) {
        this.stream = stream;
        this.events = events;
        this.partitions = partitions;
        this.anyPartition = partitions.length == 0;
        this.deadlineNanos = deadlineNanos;
        this.outcome = outcome;
        int sum = 0;
        for (Valid event : events) {
            sum = Math.addExact(sum, event.bytes());
        }
        this.bytes = sum;
    }

    StreamSpec stream() {
        return stream;
    }

    List<Valid> events() {
        return events;
    }

    boolean hasNoKeys() {
        return anyPartition;
    }

    int partition(int event) {
        return partitions[event];
    }

    int bytes() {
        return bytes;
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    long sequence() {
        return sequence;
    }

    void setSequence(long value) {
        sequence = value;
    }

    /**
     * Marks the call as sent: from then on its outcome is unknown until the database responds.
     *
     * @return {@code false} if it is already completed and must not be sent
     */
    boolean beginSending() {
        return state.compareAndSet(State.WAITING, State.SENT) || state.get() == State.SENT;
    }

    boolean isSent() {
        return state.get() == State.SENT;
    }

    boolean isCompleted() {
        return state.get() == State.COMPLETED;
    }

    void complete(EventPosition[] positions) {
        if (state.getAndSet(State.COMPLETED) != State.COMPLETED) {
            outcome.stored(positions);
        }
    }

    /** Fails the call: as not stored if it was never sent, otherwise as unknown. */
    void abort(String reasonIfNotSent, String reasonIfSent, @Nullable Throwable cause) {
        if (state.compareAndSet(State.WAITING, State.COMPLETED)) {
            outcome.failed(notStoredException(reasonIfNotSent, cause));
        } else {
            failAsUnknown(reasonIfSent, cause);
        }
    }

    /** Fails the call if it was never sent, or if the database has confirmed that it is not stored. */
    void failAsNotStored(String reason, @Nullable Throwable cause) {
        fail(notStoredException(reason, cause));
    }

    private EventNotStoredException notStoredException(String reason, @Nullable Throwable cause) {
        return new EventNotStoredException("Not stored in stream " + stream.name() + ": " + reason, cause);
    }

    /** Fails the call if the database may have stored it. */
    void failAsUnknown(String reason, @Nullable Throwable cause) {
        fail(new EventOutcomeUnknownException(
                "It is unknown whether the event was stored in stream " + stream.name() + ": " + reason, cause));
    }

    private void fail(EventSqlException failure) {
        if (state.getAndSet(State.COMPLETED) != State.COMPLETED) {
            outcome.failed(failure);
        }
    }
}
