package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventFailedException;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has events handled, again after a growing delay when the handler fails, until they succeed or the {@link RetryPolicy}
 * allows no further attempt; then the failure policy applies. Nothing a handler throws ends the member. Thread-safe.
 */
final class Attempts {
    private static final Logger LOG = LoggerFactory.getLogger(Attempts.class);
    private static final long LEASE_CHECK_MS = 20;
    private static final long NOT_HANDLED_RETRY_MIN_MS = 50;
    private static final long NOT_HANDLED_RETRY_MAX_MS = 1_000;

    private final ConsumerSpec spec;
    private final RetryPolicy retry;
    private final HandlerCall call;
    private final Failures failures;
    private final OffsetCommitter committer;
    private final Listeners listeners;
    private final CloseSignal closeSignal;

    Attempts(
            ConsumerSpec spec,
            HandlerCall call,
            Failures failures,
            OffsetCommitter committer,
            Listeners listeners,
            CloseSignal closeSignal) {
        this.spec = spec;
        this.retry = spec.retry();
        this.call = call;
        this.failures = failures;
        this.committer = committer;
        this.listeners = listeners;
        this.closeSignal = closeSignal;
    }

    /** Completes events that are handled or have failed for good. */
    interface Outcome {
        /** Statements that a transactional handler commits together with its effects. */
        default TransactionStep alsoCommit() {
            return TransactionStep.NONE;
        }

        /** Called when the events are handled; returns whether the next event may be handled. */
        boolean handled(StoredEvent first, StoredEvent last);

        /**
         * Called when the event failed and is not retried.
         *
         * @return whether the next event may be handled
         */
        boolean failed(StoredEvent event, int attempts, Throwable error);
    }

    /**
     * Handles events of one partition in one call, or each by itself to find the one that fails.
     *
     * @return whether the next events may be handled: {@code false} if the partition ends
     */
    boolean handle(Assignment assignment, List<StoredEvent> events, HandlerClock clock) {
        return handle(assignment, events, clock, new Outcome() {
            @Override
            public boolean handled(StoredEvent first, StoredEvent last) {
                assignment.recordHandled(first.offset(), last.offset() + 1);
                committer.request();
                return true;
            }

            @Override
            public boolean failed(StoredEvent event, int attempts, Throwable error) {
                return failures.apply(assignment, event, attempts, error);
            }
        });
    }

    /** Handles events as {@link #handle(Assignment, List, HandlerClock)} does, with another outcome. */
    boolean handle(Assignment assignment, List<StoredEvent> events, HandlerClock clock, Outcome outcome) {
        List<StoredEvent> left = events;
        int notHandled = 0;
        for (int attempt = 1; awaitMayHandle(assignment); attempt++) {
            try {
                callTimed(assignment, left, clock, outcome.alsoCommit());
                return outcome.handled(left.getFirst(), left.getLast());
            } catch (HandlerCall.LostException e) {
                LOG.info("{}: {}", assignment.name(), e.getMessage());
                return false;
            } catch (HandlerCall.NotHandledException e) {
                long delayMs =
                        Math.min(NOT_HANDLED_RETRY_MAX_MS, NOT_HANDLED_RETRY_MIN_MS << Math.min(notHandled++, 10));
                LOG.warn("{}: {}; retrying in {} ms", assignment.name(), e.getMessage(), delayMs);
                attempt--;
                if (closeSignal.isClosingAfter(delayMs)) {
                    return false;
                }
            } catch (Throwable e) { // nothing that a handler throws, not even an Error, may end the member
                int failed = indexOfFailed(left, e);
                if (failed > 0) {
                    if (!finish(assignment, left.subList(0, failed), clock, outcome)) {
                        return false;
                    }
                    left = left.subList(failed, left.size());
                    attempt = 1;
                }
                Throwable cause = e instanceof EventFailedException && e.getCause() != null ? e.getCause() : e;
                boolean willRetry = retry.allowsAttemptAfter(attempt, cause);
                long delayMs = delayMs(attempt);
                report(left.getFirst(), attempt, cause, willRetry, delayMs);
                if (!willRetry) {
                    return left.size() == 1
                            ? outcome.failed(left.getFirst(), attempt, cause)
                            : handleEach(assignment, left, clock, outcome);
                }
                if (closeSignal.isClosingAfter(delayMs)) {
                    return false;
                }
            }
        }
        return false;
    }

    /** The events before the one that failed are handled; if they were rolled back with it, they are handled again. */
    private boolean finish(Assignment assignment, List<StoredEvent> before, HandlerClock clock, Outcome outcome) {
        return call.isTransactional()
                ? handle(assignment, before, clock, outcome)
                : outcome.handled(before.getFirst(), before.getLast());
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

    private boolean handleEach(Assignment assignment, List<StoredEvent> events, HandlerClock clock, Outcome outcome) {
        for (StoredEvent event : events) {
            boolean parked = assignment.isParked(event.key()); // by one of those before it
            boolean mayContinue = parked
                    ? failures.parkFollowing(assignment, List.of(event))
                    : handle(assignment, List.of(event), clock, outcome);
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

    private void report(StoredEvent event, int attempt, Throwable error, boolean willRetry, long delayMs) {
        if (willRetry) {
            LOG.warn(
                    "Handler of consumer {} failed at {} (key {}), attempt {}; retrying in {} ms",
                    spec.name(),
                    event.position(),
                    event.key(),
                    attempt,
                    delayMs,
                    error);
        } else {
            LOG.warn(
                    "Handler of consumer {} failed at {} (key {}), attempt {}; not retrying",
                    spec.name(),
                    event.position(),
                    event.key(),
                    attempt,
                    error);
        }
        listeners.call(l -> l.handlerFailed(event, spec.name(), attempt, error, willRetry));
    }

    /**
     * Waits while the lease has expired and no other member has taken the partition (rule 3, Handle).
     *
     * @return {@code false} if no further event may be handled
     */
    private boolean awaitMayHandle(Assignment assignment) {
        while (!assignment.isEnding() && !closeSignal.isClosing()) {
            if (assignment.isLeaseValid()) {
                return true;
            }
            if (closeSignal.isClosingAfter(LEASE_CHECK_MS)) {
                return false;
            }
        }
        return false;
    }

    /** Returns a delay of which half is fixed and the rest random. */
    private long delayMs(int attempt) {
        long longest = retry.maxDelay().toMillis();
        long delay = Math.min(longest, retry.initialDelay().toMillis() << Math.min(attempt - 1, 20));
        return delay / 2 + ThreadLocalRandom.current().nextLong(delay / 2 + 1);
    }
}
