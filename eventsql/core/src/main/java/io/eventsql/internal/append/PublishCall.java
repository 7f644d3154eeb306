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
 * The events of one publish call that go to one shard: they commit together or not at all. Completed once, by whoever is
 * first: the batch that stored it, the deadline, or the end of the publisher.
 */
final class PublishCall {
    /** Told what became of the call. */
    interface Outcome {
        /** Committed; one position for each event, in the order of the call. */
        void stored(EventPosition[] positions);

        /** An {@link EventNotStoredException} or an {@link EventOutcomeUnknownException}. */
        void failed(EventSqlException failure);
    }

    /** {@link #partitions} of a call whose events have no key: the batch chooses one partition for all of them. */
    static final int[] ANY_PARTITION = {};

    private final StreamSpec stream;
    private final List<Valid> events;
    private final int[] partitions;
    private final boolean anyPartition;
    private final int bytes;
    private final long deadlineNanos;
    private final Outcome outcome;
    private final AtomicReference<State> state = new AtomicReference<>(State.WAITING);
    /** Orders the calls of one shard; given when the call enters the queue. */
    private long sequence;

    private enum State {
        /** Never sent to the database. */
        WAITING,
        /** Sent at least once: its outcome is unknown until the database answers. */
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
     * Says that it is about to be sent: from now on its outcome is unknown until the database answers.
     *
     * @return {@code false} if it is completed already and must not be sent
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

    void stored(EventPosition[] positions) {
        if (state.getAndSet(State.COMPLETED) != State.COMPLETED) {
            outcome.stored(positions);
        }
    }

    /** Nothing more is done for it: not stored if it was never sent, else unknown. */
    void giveUp(String reasonIfNotSent, String reasonIfSent, @Nullable Throwable cause) {
        if (state.compareAndSet(State.WAITING, State.COMPLETED)) {
            outcome.failed(notStoredException(reasonIfNotSent, cause));
        } else {
            unknown(reasonIfSent, cause);
        }
    }

    /** The database has said so, or it was never sent. */
    void notStored(String reason, @Nullable Throwable cause) {
        fail(notStoredException(reason, cause));
    }

    private EventNotStoredException notStoredException(String reason, @Nullable Throwable cause) {
        return new EventNotStoredException("Not stored in stream " + stream.name() + ": " + reason, cause);
    }

    void unknown(String reason, @Nullable Throwable cause) {
        fail(new EventOutcomeUnknownException(
                "It is unknown whether the event was stored in stream " + stream.name() + ": " + reason, cause));
    }

    private void fail(EventSqlException failure) {
        if (state.getAndSet(State.COMPLETED) != State.COMPLETED) {
            outcome.failed(failure);
        }
    }
}
