package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventFailedException;
import io.eventsql.RetryPolicy;
import io.eventsql.StoredEvent;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has events handled: again after a growing delay when the handler fails, until they succeed or the retry policy allows
 * no more; then the failure policy applies. Nothing a handler throws ends the member. Thread-safe.
 */
final class Attempts {
    private static final Logger LOG = LoggerFactory.getLogger(Attempts.class);
    private static final int LEASE_CHECK_MS = 20;
    private static final long NOT_HANDLED_MIN_MS = 50;
    private static final long NOT_HANDLED_MAX_MS = 1_000;

    private final ConsumerSpec spec;
    private final RetryPolicy retry;
    private final HandlerCall call;
    private final Failures failures;
    private final CountDownLatch closing = new CountDownLatch(1);

    Attempts(ConsumerSpec spec, HandlerCall call, Failures failures) {
        this.spec = spec;
        this.retry = spec.retry();
        this.call = call;
        this.failures = failures;
    }

    /** What becomes of events in the end. */
    interface End {
        /** They are handled; returns whether to go on with the next one. */
        boolean handled(StoredEvent first, StoredEvent last);

        /**
         * The event failed and may not be tried again.
         *
         * @return whether to go on with the next one
         */
        boolean failed(StoredEvent event, int attempts, Throwable error);
    }

    /**
     * Handles events of one partition in one call, or each by itself to find the one that fails.
     *
     * @return whether to go on with the next ones: {@code false} if the partition ends
     */
    boolean handle(ShardMember member, OwnedPartition partition, List<StoredEvent> events, HandlerClock clock) {
        return handle(member, partition, events, clock, HandlerCall.Step.NONE, new End() {
            @Override
            public boolean handled(StoredEvent first, StoredEvent last) {
                partition.handled(first.offset(), last.offset() + 1);
                member.threads().committer().request(member);
                return true;
            }

            @Override
            public boolean failed(StoredEvent event, int attempts, Throwable error) {
                return failures.apply(member, partition, event, attempts, error);
            }
        });
    }

    boolean handle(
            ShardMember member,
            OwnedPartition partition,
            List<StoredEvent> events,
            HandlerClock clock,
            HandlerCall.Step alsoCommit,
            End end) {
        List<StoredEvent> left = events;
        int notHandled = 0;
        for (int attempt = 1; awaitMayHandle(partition); attempt++) {
            try {
                callTimed(member, partition, left, clock, alsoCommit);
                return end.handled(left.getFirst(), left.getLast());
            } catch (HandlerCall.LostException e) {
                LOG.info("{}: {}", member.name(partition), e.getMessage());
                return false;
            } catch (HandlerCall.NotHandledException e) {
                LOG.warn("{}, tried again: {}", member.name(partition), e.getMessage());
                attempt--;
                if (isClosingAfter(Math.min(NOT_HANDLED_MAX_MS, NOT_HANDLED_MIN_MS << Math.min(notHandled++, 10)))) {
                    return false;
                }
            } catch (Throwable e) { // whatever a handler throws, even an Error, must not end the member
                int failed = indexOfFailed(left, e);
                if (failed > 0) {
                    if (!finish(member, partition, left.subList(0, failed), clock, alsoCommit, end)) {
                        return false;
                    }
                    left = left.subList(failed, left.size());
                    attempt = 1;
                }
                Throwable cause = e instanceof EventFailedException && e.getCause() != null ? e.getCause() : e;
                boolean again = retry.allowsAttemptAfter(attempt, cause);
                report(member, left.getFirst(), attempt, cause, again);
                if (!again) {
                    return left.size() == 1
                            ? end.failed(left.getFirst(), attempt, cause)
                            : handleEach(member, partition, left, clock, alsoCommit, end);
                }
                if (isClosingAfter(delayMs(attempt))) {
                    return false;
                }
            }
        }
        return false;
    }

    /** The events before the one that failed are handled, unless they were rolled back with it: then again. */
    private boolean finish(
            ShardMember member,
            OwnedPartition partition,
            List<StoredEvent> before,
            HandlerClock clock,
            HandlerCall.Step alsoCommit,
            End end) {
        if (call.isTransactional()) {
            return handle(member, partition, before, clock, alsoCommit, end);
        }
        return end.handled(before.getFirst(), before.getLast());
    }

    private void callTimed(
            ShardMember member,
            OwnedPartition partition,
            List<StoredEvent> events,
            HandlerClock clock,
            HandlerCall.Step alsoCommit)
            throws Exception {
        clock.start();
        try {
            call.call(member, partition, events, alsoCommit);
        } catch (Throwable e) {
            clock.stop();
            throw e;
        } finally {
            Thread.interrupted(); // an interrupt that a handler leaves would break the next use of a connection
        }
        long nanos = clock.stop();
        if (member.listeners().any()) {
            member.listeners().tell(l -> l.handled(member.name(partition), events.size(), nanos));
        }
    }

    private boolean handleEach(
            ShardMember member,
            OwnedPartition partition,
            List<StoredEvent> events,
            HandlerClock clock,
            HandlerCall.Step alsoCommit,
            End end) {
        for (StoredEvent event : events) {
            boolean parked = partition.isParked(event.key()); // by one of those before it
            boolean goesOn = parked
                    ? failures.parkBehind(member, partition, List.of(event))
                    : handle(member, partition, List.of(event), clock, alsoCommit, end);
            if (!goesOn) {
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

    private void report(ShardMember member, StoredEvent event, int attempt, Throwable error, boolean again) {
        LOG.warn(
                "Handler of consumer {} failed at {}, attempt {}, {}",
                spec.name(),
                event.position(),
                attempt,
                again ? "is tried again" : "is not tried again",
                error);
        member.listeners().tell(l -> l.handlerFailed(event, spec.name(), attempt, error, again));
    }

    /** Waits while the lease has run out and nobody has taken it; {@code false} if events must not be handled. */
    boolean awaitMayHandle(OwnedPartition partition) {
        while (!partition.isEnding() && closing.getCount() > 0) {
            if (partition.isHeld()) {
                return true;
            }
            if (isClosingAfter(LEASE_CHECK_MS)) {
                return false;
            }
        }
        return false;
    }

    /** Waits before the next attempt. Only handlers interrupt these threads, and they must not end the member by it. */
    boolean isClosingAfter(long delayMs) {
        Thread.interrupted();
        try {
            return closing.await(delayMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            LOG.debug("interrupted by a handler", e);
            return closing.getCount() == 0;
        }
    }

    /** Half of the delay at least, the rest by chance. */
    private long delayMs(int attempt) {
        long longest = retry.maxDelay().toMillis();
        long delay = Math.min(longest, retry.initialDelay().toMillis() << Math.min(attempt - 1, 20));
        return delay / 2 + ThreadLocalRandom.current().nextLong(delay / 2 + 1);
    }

    /** No event is given to the handler any more. */
    void stop() {
        closing.countDown();
    }

    boolean isStopped() {
        return closing.getCount() == 0;
    }
}
