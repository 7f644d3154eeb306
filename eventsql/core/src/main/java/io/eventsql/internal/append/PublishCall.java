package io.eventsql.internal.append;

import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPosition;
import io.eventsql.EventSqlException;
import io.eventsql.StreamSpec;
import io.eventsql.VersionConflictException;
import io.eventsql.internal.append.EventValidator.Valid;
import io.eventsql.internal.shard.KeyHash;
import io.eventsql.internal.shard.PartitionMap;
import io.eventsql.internal.sql.SqlErrors;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * The events of one publish call for one shard: they are committed together or not at all. Completed exactly once, by the
 * batch that stored it, by its deadline, or when the publisher is closed, whichever comes first. Thread-safe.
 */
final class PublishCall {
    /** Callbacks for the outcome of the call; exactly one of them is called, and one of them again if it throws. */
    interface Outcome {
        /**
         * Called after the commit, with one position for each event in the order of the call.
         *
         * @param continuations completes the future of an asynchronous call, together with the others of its batch
         */
        void stored(EventPosition[] positions, Executor continuations);

        /** Called with an {@link EventNotStoredException} or an {@link EventOutcomeUnknownException}. */
        void failed(EventSqlException failure);

        /**
         * Divides the outcome, because the events belong to several shards now: the callbacks of each part take the place of these.
         *
         * @param indexes the events of each part
         */
        default List<Outcome> divide(List<int[]> indexes) {
            throw new IllegalStateException("the outcome of a single event");
        }
    }

    private static final AtomicReferenceFieldUpdater<PublishCall, State> STATE =
            AtomicReferenceFieldUpdater.newUpdater(PublishCall.class, State.class, "state");

    /** The {@link #partitions} of a call whose events have no key: the batch chooses one partition for all of them. */
    static final int[] ANY_PARTITION = {};

    private final StreamSpec stream;
    private final List<Valid> events;
    /** The map by which the call is routed; changed only while the call waits in a queue, or moves to another. */
    private PartitionMap map;
    /** The number of the slot map by which the call was routed to its shard. */
    private long routedBy;

    private int[] partitions;
    private final boolean anyPartition;
    private final boolean callerWaits;
    private final int bytes;
    private final long deadlineNanos;
    private final Outcome outcome;
    private final long calledAtNanos;
    /** The version that the key of the events must have; {@code null}: any. */
    private final @Nullable Long expectedVersion;

    private volatile State state = State.WAITING;
    /** Why the last attempt to append the call failed; {@code null} if there was none. */
    private volatile @Nullable Throwable lastFailure;
    /** Orders the calls of one shard; assigned when the call enters the queue. */
    private long sequence;
    /** Why the batch of the call gives it back; {@code null} if it does not. */
    private @Nullable Return returned;
    /** How often the call was held. */
    private int holds;

    private enum State {
        /** Never sent to the database, or rolled back by it. */
        WAITING,
        /** Sent: its outcome is unknown until the database responds. */
        SENT,
        COMPLETED
    }

    /**
     * @param map the stream's map on the shard
     * @param partitions one for each event, or {@link #ANY_PARTITION}
     * @param callerWaits whether a thread is blocked until the outcome
     * @param calledAtNanos as {@link System#nanoTime()}, and so is the deadline
     */
    PublishCall(
            StreamSpec stream,
            List<Valid> events,
            PartitionMap map,
            int[] partitions,
            boolean callerWaits,
            long calledAtNanos,
            long deadlineNanos,
            Outcome outcome) {
        this(stream, events, map, partitions, callerWaits, calledAtNanos, deadlineNanos, null, outcome);
    }

    /** @param expectedVersion the version that the key, which all events have, must have; {@code null}: any */
    PublishCall(
            StreamSpec stream,
            List<Valid> events,
            PartitionMap map,
            int[] partitions,
            boolean callerWaits,
            long calledAtNanos,
            long deadlineNanos,
            @Nullable Long expectedVersion,
            Outcome outcome) {
        this.stream = stream;
        this.expectedVersion = expectedVersion;
        this.events = events;
        this.map = map;
        this.partitions = partitions;
        this.anyPartition = partitions.length == 0;
        this.callerWaits = callerWaits;
        this.calledAtNanos = calledAtNanos;
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

    /** Returns whether a thread is blocked until the outcome. */
    boolean callerWaits() {
        return callerWaits;
    }

    int partition(int event) {
        return partitions[event];
    }

    /** Returns the stream's map by which the call is routed. */
    PartitionMap map() {
        return map;
    }

    /**
     * Routes the call by another map. Its events without a key, if it has others with one, stay where they are, as long as it is a
     * map of the same shard: partitions are never removed.
     */
    void reroute(PartitionMap other) {
        map = other;
        int[] changed = new int[partitions.length];
        for (int i = 0; i < changed.length; i++) {
            String key = events.get(i).key();
            changed[i] = key == null ? partitions[i] % other.partitions() : other.partition(KeyHash.of(key));
        }
        partitions = anyPartition ? ANY_PARTITION : changed;
    }

    /** Returns the number of the slot map by which the call was routed to its shard. */
    long routedBy() {
        return routedBy;
    }

    /** Records the slot map by which the call was routed to its shard. */
    PublishCall routedBy(long number) {
        routedBy = number;
        return this;
    }

    /**
     * Divides the call, which was never sent or is not stored, into calls of some of its events each.
     *
     * @param indexes the events of each part
     * @return nothing if the call is completed already
     */
    List<PublishCall> divide(List<int[]> indexes) {
        if (!STATE.compareAndSet(this, State.WAITING, State.COMPLETED)) {
            return List.of();
        }
        List<Outcome> outcomes = outcome.divide(indexes);
        List<PublishCall> parts = new ArrayList<>();
        for (int i = 0; i < outcomes.size(); i++) {
            int[] ofPart = indexes.get(i);
            List<Valid> eventsOfPart = new ArrayList<>();
            int[] partitionsOfPart = new int[ofPart.length];
            for (int j = 0; j < ofPart.length; j++) {
                eventsOfPart.add(events.get(ofPart[j]));
                partitionsOfPart[j] = anyPartition ? 0 : partitions[ofPart[j]];
            }
            parts.add(new PublishCall(
                    stream,
                    eventsOfPart,
                    map,
                    partitionsOfPart,
                    callerWaits,
                    calledAtNanos,
                    deadlineNanos,
                    expectedVersion,
                    outcomes.get(i)));
        }
        return parts;
    }

    /** Why a batch gives a call back to the queue. */
    enum Return {
        /** Its stream has grown, or its slot was closed: it is routed anew. */
        REROUTE,
        /** A transaction of the application has its key, or only an unavailable shard may have its stream. */
        HOLD,
        /** It must follow one of those. */
        FOLLOW
    }

    /** Has the batch of the call, which is not stored, give it back to the queue. */
    void returnToQueue(Return reason) {
        returned = reason;
    }

    /** Returns why the call was given back to the queue; {@code null} if it was not, or is completed since. The queue has it then. */
    @Nullable
    Return takeReturned() {
        Return back = isCompleted() ? null : returned;
        returned = null;
        return back;
    }

    /** Counts that a call was given back to wait; returns how often it was before. */
    int countHold() {
        return holds++;
    }

    /** Returns whether the call is stored only if its key has a certain version. */
    boolean expectsVersion() {
        return expectedVersion != null;
    }

    /** Returns the version that the key of the events must have; {@code null}: any. */
    @Nullable
    Long expectedVersion() {
        return expectedVersion;
    }

    /** Adds the keys of the events, each with the stream. */
    void addKeysTo(Set<String> keys) {
        for (Valid event : events) {
            String key = event.key();
            if (key != null) {
                keys.add(ofStream(key));
            }
        }
    }

    private String ofStream(String key) {
        return stream.name() + ' ' + key; // names of streams have no blank
    }

    /** Returns whether an event has one of the keys. */
    boolean hasKeyOf(Set<String> keys) {
        if (keys.isEmpty()) {
            return false;
        }
        for (Valid event : events) {
            String key = event.key();
            if (key != null && keys.contains(ofStream(key))) {
                return true;
            }
        }
        return false;
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
        return STATE.compareAndSet(this, State.WAITING, State.SENT) || state == State.SENT;
    }

    boolean isSent() {
        return state == State.SENT;
    }

    boolean isCompleted() {
        return state == State.COMPLETED;
    }

    void complete(EventPosition[] positions, Executor continuations) {
        if (STATE.getAndSet(this, State.COMPLETED) != State.COMPLETED) {
            try {
                outcome.stored(positions, continuations);
            } catch (Throwable e) { // such as for a lack of memory: another outcome follows
                state = State.SENT;
                throw e;
            }
        }
    }

    /** Records that the database has not stored the call: until it is sent again, its outcome is certain. */
    void rolledBack() {
        STATE.compareAndSet(this, State.SENT, State.WAITING);
    }

    /** Records why an attempt to append the call failed. */
    void recordFailure(Throwable failure) {
        lastFailure = failure;
    }

    /**
     * Fails the call at its deadline: as not stored if that is certain, otherwise as unknown.
     *
     * @param shardFailure why other calls of the shard have failed; {@code null} if they have not
     */
    void expire(long nowNanos, @Nullable Throwable shardFailure) {
        abort("within " + waited(nowNanos) + " (settings.publishTimeout)", shardFailure);
    }

    /** Fails the call because the publisher is closed: as not stored if that is certain, otherwise as unknown. */
    void failAsClosed(@Nullable Throwable shardFailure) {
        abort(
                "before the publisher was closed, after " + waited(System.nanoTime()) + " (settings.closeTimeout)",
                shardFailure);
    }

    private void abort(String limit, @Nullable Throwable shardFailure) {
        Throwable own = lastFailure;
        EventNotStoredException notStored = own != null
                ? notStoredException("no attempt succeeded " + limit + "; the last failed: " + sentence(own), own)
                : notStoredException(
                        "it was not sent " + limit
                                + (shardFailure == null ? "" : "; the shard failed: " + sentence(shardFailure)),
                        shardFailure);
        if (STATE.compareAndSet(this, State.WAITING, State.COMPLETED)) {
            passOn(notStored, State.WAITING);
        } else {
            failAsUnknown(
                    "the database did not confirm the commit " + limit
                            + (own == null ? "" : "; an attempt failed: " + sentence(own)),
                    own == null ? shardFailure : own);
        }
    }

    /** Fails the call, whose last attempt was rolled back, and would be again. */
    void failAsRejected() {
        Throwable own = lastFailure;
        failAsNotStored(
                "the database rejected it after " + waited(System.nanoTime())
                        + (own == null ? "" : ": " + sentence(own)),
                own);
    }

    /** Fails the call, whose last attempt was rejected, but an earlier one may have been stored. */
    void failAfterDoubt() {
        Throwable own = lastFailure;
        failAsUnknown(
                "an append was in doubt, and its retry failed after " + waited(System.nanoTime())
                        + (own == null ? "" : ": " + sentence(own)),
                own);
    }

    /** Fails the call because of an unexpected failure of the library: as not stored if that is certain. */
    void failUnexpectedly(Throwable failure) {
        String reason = "the append failed unexpectedly: " + failure;
        EventNotStoredException notStored = notStoredException(reason, failure);
        if (STATE.compareAndSet(this, State.WAITING, State.COMPLETED)) {
            passOn(notStored, State.WAITING);
        } else {
            failAsUnknown(reason, failure);
        }
    }

    /** Fails the call, which has waited for room in the buffer until its deadline. */
    void failAsBufferFull(long bufferBytes, @Nullable Throwable shardFailure) {
        failAsNotStored(
                "the buffer of " + bufferBytes + " bytes was full for " + waited(System.nanoTime())
                        + " (settings.bufferBytes, settings.publishTimeout)"
                        + (shardFailure == null ? "" : "; the shard failed: " + sentence(shardFailure)),
                shardFailure);
    }

    private String waited(long nowNanos) {
        return String.format(Locale.ROOT, "%.1f s", (nowNanos - calledAtNanos) / 1e9);
    }

    private static String sentence(Throwable failure) {
        return SqlErrors.message(failure);
    }

    /** Fails the call, which the database has not stored, because its key has another version than expected. */
    void failAsConflict(long actualVersion) {
        fail(new VersionConflictException(
                stream.name(),
                Objects.requireNonNull(events.getFirst().key()),
                Objects.requireNonNull(expectedVersion),
                actualVersion,
                null));
    }

    /** Fails the call if it was never sent, or if the database has confirmed that it is not stored. */
    void failAsNotStored(String reason, @Nullable Throwable cause) {
        fail(notStoredException(reason, cause));
    }

    private EventNotStoredException notStoredException(String reason, @Nullable Throwable cause) {
        return new EventNotStoredException("Not stored in stream " + stream.name() + ": " + reason, cause);
    }

    private void failAsUnknown(String reason, @Nullable Throwable cause) {
        fail(new EventOutcomeUnknownException(
                "It is unknown whether the event was stored in stream " + stream.name() + ": " + reason, cause));
    }

    private void fail(EventSqlException failure) {
        State before = STATE.getAndSet(this, State.COMPLETED);
        if (before != State.COMPLETED) {
            passOn(failure, before);
        }
    }

    private void passOn(EventSqlException failure, State before) {
        try {
            outcome.failed(failure);
        } catch (Throwable e) { // such as for a lack of memory: the call is failed again
            state = before;
            throw e;
        }
    }
}
