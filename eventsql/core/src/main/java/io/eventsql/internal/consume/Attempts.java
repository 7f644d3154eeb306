package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventFailedException;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import io.eventsql.UndecodableEventException;
import io.eventsql.internal.consume.CircuitBreaker.Admission;
import io.eventsql.internal.consume.CircuitBreaker.Pause;
import io.eventsql.internal.thread.ForeignErrors;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has events handled, again after a growing delay when the handler fails, until they succeed or the {@link RetryPolicy}
 * allows no further attempt; then the failure policy applies, unless a {@link CircuitBreaker} opens. Nothing a handler
 * throws ends the member. Delays occupy no permit, and end at once when the partition ends. Thread-safe.
 */
final class Attempts {
    private static final Logger LOG = LoggerFactory.getLogger(Attempts.class);
    private static final long LEASE_CHECK_MS = 20;
    private static final long NOT_HANDLED_RETRY_MIN_MS = 50;
    private static final long NOT_HANDLED_RETRY_MAX_MS = 1_000;
    private static final long NO_RETRY = -1;

    private final ConsumerSpec spec;
    private final RetryPolicy retry;
    private final HandlerCall call;
    private final Failures failures;
    private final OffsetCommitter committer;
    private final CircuitReports circuitReports;
    private final Listeners listeners;
    private final Outcome fetched = new Fetched();

    Attempts(
            ConsumerSpec spec,
            HandlerCall call,
            Failures failures,
            OffsetCommitter committer,
            CircuitReports circuitReports,
            Listeners listeners) {
        this.spec = spec;
        this.retry = spec.retry().forPolicy(spec.failurePolicy());
        this.call = call;
        this.failures = failures;
        this.committer = committer;
        this.circuitReports = circuitReports;
        this.listeners = listeners;
    }

    /** Completes events that are handled or have failed for good. */
    interface Outcome {
        /**
         * Statements that a transactional handler commits together with its effects. They run after the handler; before it
         * where an earlier attempt may be stored, which they find out: they wait for it, and fail if it is.
         */
        default TransactionStep alsoCommit() {
            return TransactionStep.NONE;
        }

        /** Counts failures for good, and pauses the partition after many of them. */
        default CircuitBreaker circuit(Assignment assignment) {
            return CircuitBreaker.OFF;
        }

        /** Called when the events are handled; returns whether the next event may be handled. */
        boolean handled(Assignment assignment, StoredEvent first, StoredEvent last);

        /**
         * Called when the event failed and is not retried.
         *
         * @return whether the next event may be handled
         */
        boolean failed(Assignment assignment, StoredEvent event, int attempts, Throwable error);
    }

    /** The outcome of fetched events: their offset is committed later, or the failure policy applies. */
    private final class Fetched implements Outcome {
        @Override
        public CircuitBreaker circuit(Assignment assignment) {
            return assignment.circuit();
        }

        @Override
        public boolean handled(Assignment assignment, StoredEvent first, StoredEvent last) {
            assignment.recordHandled(first.offset(), last.offset() + 1);
            committer.request();
            return true;
        }

        @Override
        public boolean failed(Assignment assignment, StoredEvent event, int attempts, Throwable error) {
            return failures.apply(assignment, event, attempts, error);
        }
    }

    /**
     * Handles events of one partition in one call, or each by itself to find the one that fails.
     *
     * @return whether the next events may be handled: {@code false} if the partition ends
     */
    boolean handle(Assignment assignment, List<StoredEvent> events, HandlerTurn turn) {
        return handle(assignment, events, turn, fetched);
    }

    /** Handles events as {@link #handle(Assignment, List, HandlerTurn)} does, with another outcome. */
    boolean handle(Assignment assignment, List<StoredEvent> events, HandlerTurn turn, Outcome outcome) {
        UndecodableEventException undecodable = assignment.undecodable().failure(events.getFirst());
        if (undecodable != null) {
            return failUndecodable(assignment, events.getFirst(), undecodable, turn, outcome);
        }
        CircuitBreaker circuit = outcome.circuit(assignment);
        if (events.size() > 1 && circuit.isOpen()) {
            return handleEach(assignment, events, turn, outcome); // one event is enough to find out whether it closes
        }
        List<StoredEvent> left = events;
        int notHandled = 0;
        for (int attempt = 1; ; attempt++) {
            Admission admission = awaitAdmission(assignment, left.getFirst(), turn, circuit);
            if (admission == null) {
                return false;
            }
            long delayMs;
            try {
                callTimed(assignment, left, turn.clock(), outcome.alsoCommit());
                recordSuccess(assignment, circuit);
                return outcome.handled(assignment, left.getFirst(), left.getLast());
            } catch (HandlerCall.LostException e) {
                circuit.recordNoResult(admission);
                LOG.info("{}: {}", assignment.name(), e.getMessage());
                return false;
            } catch (HandlerCall.NotHandledException e) {
                circuit.recordNoResult(admission);
                delayMs = Math.min(NOT_HANDLED_RETRY_MAX_MS, NOT_HANDLED_RETRY_MIN_MS << Math.min(notHandled++, 10));
                LOG.warn("{}: {}; retrying in {} ms", assignment.name(), e.getMessage(), delayMs);
                attempt--;
            } catch (Throwable e) { // nothing that a handler throws, not even an Error, may end the member
                int failed = indexOfFailed(left, e);
                if (failed > 0) {
                    if (!finish(assignment, left.subList(0, failed), turn, outcome)) {
                        return false;
                    }
                    left = left.subList(failed, left.size());
                    attempt = 1;
                }
                Throwable cause = e instanceof EventFailedException && e.getCause() != null ? e.getCause() : e;
                Failure failure = new Failure(left, attempt, cause);
                delayMs = delayBeforeRetry(assignment, circuit, admission, failure);
                if (delayMs == NO_RETRY) {
                    return giveUp(assignment, turn, outcome, failure);
                }
                if (circuit.isOpen()) {
                    attempt = 0; // all attempts again, once it is closed
                }
            }
            if (turn.isEndingAfter(delayMs)) {
                return false;
            }
            if (left.size() < events.size() && hasParkedKey(assignment, left)) { // parked with one of those before
                return handleEach(assignment, left, turn, outcome);
            }
        }
    }

    private static boolean hasParkedKey(Assignment assignment, List<StoredEvent> events) {
        return events.stream().anyMatch(event -> assignment.parkedKeys().contains(event.key()));
    }

    /** A failed call: the first event has failed, or the call does not tell which of the events has. */
    private record Failure(List<StoredEvent> events, int attempt, Throwable cause) {
        StoredEvent event() {
            return events.getFirst();
        }

        boolean isOfOneEvent() {
            return events.size() == 1;
        }
    }

    private void recordSuccess(Assignment assignment, CircuitBreaker circuit) {
        if (circuit.recordSuccess()) {
            circuitReports.closed(assignment);
        }
    }

    /** Records and reports the failure; returns the delay before the next attempt, or {@link #NO_RETRY}. */
    private long delayBeforeRetry(Assignment assignment, CircuitBreaker circuit, Admission admission, Failure failure) {
        boolean isForGood = !retry.allowsAttemptAfter(failure.attempt(), failure.cause());
        boolean isNeverRetried = !retry.allowsAttemptAfter(0, failure.cause());
        if (isNeverRetried || !failure.isOfOneEvent()) {
            circuit.recordNoResult(admission);
            return report(failure, isForGood ? NO_RETRY : delayMs(failure.attempt()));
        }
        Optional<Pause> pause = circuit.recordFailure(failure.event(), admission, isForGood);
        if (pause.isPresent()) {
            report(failure, pause.get().delay().toMillis());
            circuitReports.paused(assignment, failure.event(), failure.cause(), pause.get());
            return pause.get().delay().toMillis();
        }
        boolean isOpenedByOthers = circuit.isOpen(); // by another lane: this event waits with it
        return report(failure, isForGood && !isOpenedByOthers ? NO_RETRY : delayMs(failure.attempt()));
    }

    /** An event that cannot be decoded, always a run of its own: the handler is not called, and no retry can help. */
    private boolean failUndecodable(
            Assignment assignment,
            StoredEvent event,
            UndecodableEventException error,
            HandlerTurn turn,
            Outcome outcome) {
        if (awaitAdmission(assignment, event, turn, CircuitBreaker.OFF) == null) {
            return false;
        }
        LOG.warn("Consumer {}: {}; applying its failure policy", spec.name(), error.getMessage());
        listeners.call(l -> l.handlerFailed(event, spec.name(), 1, error, false));
        return turn.withoutPermit(() -> outcome.failed(assignment, event, 1, error));
    }

    /** The events before the one that failed are handled; if they were rolled back with it, they are handled again. */
    private boolean finish(Assignment assignment, List<StoredEvent> before, HandlerTurn turn, Outcome outcome) {
        if (call.isTransactional()) {
            return handle(assignment, before, turn, outcome);
        }
        recordSuccess(assignment, outcome.circuit(assignment));
        return outcome.handled(assignment, before.getFirst(), before.getLast());
    }

    /** No attempt is left. Of several events each is handled by itself; a single one is left to the failure policy. */
    private boolean giveUp(Assignment assignment, HandlerTurn turn, Outcome outcome, Failure failure) {
        return failure.isOfOneEvent()
                ? turn.withoutPermit(
                        () -> outcome.failed(assignment, failure.event(), failure.attempt(), failure.cause()))
                : handleEach(assignment, failure.events(), turn, outcome);
    }

    private void callTimed(
            Assignment assignment, List<StoredEvent> events, HandlerClock clock, TransactionStep alsoCommit)
            throws Exception {
        clock.start();
        try {
            call.call(assignment, events, alsoCommit);
        } catch (Throwable e) {
            clock.stop();
            throw e;
        } finally {
            Thread.interrupted(); // an interrupt that a handler leaves would break the next use of a connection
        }
        long nanos = clock.stop();
        if (listeners.any()) {
            listeners.call(l -> l.handled(assignment.name(), events.size(), nanos));
        }
    }

    private boolean handleEach(Assignment assignment, List<StoredEvent> events, HandlerTurn turn, Outcome outcome) {
        for (StoredEvent event : events) {
            List<StoredEvent> one = List.of(event);
            boolean parked = assignment.parkedKeys().contains(event.key()); // by one of those before it
            boolean mayContinue = parked
                    ? turn.withoutPermit(() -> failures.parkFollowing(assignment, one))
                    : handle(assignment, one, turn, outcome);
            if (!mayContinue) {
                return false;
            }
        }
        return true;
    }

    private static int indexOfFailed(List<StoredEvent> events, Throwable error) {
        if (error instanceof EventFailedException failure) {
            for (int i = 0; i < events.size(); i++) {
                if (events.get(i).position().equals(failure.position())) {
                    return i;
                }
            }
        }
        return 0;
    }

    private long report(Failure failure, long delayMs) {
        boolean willRetry = delayMs != NO_RETRY;
        ForeignErrors.log(
                failure.cause(),
                shown -> LOG.warn(
                        "Handler of consumer {} failed at {} (key {}), attempt {}; {}",
                        spec.name(),
                        failure.event().position(),
                        failure.event().key(),
                        failure.attempt(),
                        willRetry ? "retrying in " + delayMs + " ms" : "not retrying",
                        shown));
        listeners.call(
                l -> l.handlerFailed(failure.event(), spec.name(), failure.attempt(), failure.cause(), willRetry));
        return delayMs;
    }

    /**
     * Waits while the lease has expired and no other member has taken the partition (rule 3, Handle), and while the
     * circuit is open.
     *
     * @return {@code null} if the event is left to the next owner
     */
    private static @Nullable Admission awaitAdmission(
            Assignment assignment, StoredEvent event, HandlerTurn turn, CircuitBreaker circuit) {
        while (turn.beginEvents(event.offset())) {
            long delayMs = LEASE_CHECK_MS;
            if (assignment.isLeaseValid()) {
                Admission admission = circuit.admit();
                if (admission.waitMs() == 0) {
                    return admission;
                }
                delayMs = admission.waitMs();
            }
            if (turn.isEndingAfter(delayMs)) {
                break;
            }
        }
        return null;
    }

    /** Returns a delay of which half is fixed and the rest random. */
    private long delayMs(int attempt) {
        long longest = retry.maxDelay().toMillis();
        long delay = Math.min(longest, retry.initialDelay().toMillis() << Math.min(attempt - 1, 20));
        return delay / 2 + ThreadLocalRandom.current().nextLong(delay / 2 + 1);
    }
}
