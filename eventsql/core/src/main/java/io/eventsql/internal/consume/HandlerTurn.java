package io.eventsql.internal.consume;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The turn of one thread to call the handler with events of a partition: it needs a permit, and gives that up while it
 * waits, so that others use it. Used by that thread alone.
 */
final class HandlerTurn {
    private static final Logger LOG = LoggerFactory.getLogger(HandlerTurn.class);

    private final Assignment assignment;
    private final Semaphore permits;
    private final boolean isLane;
    private final HandlerClock clock = new HandlerClock();
    private boolean hasPermit;

    private HandlerTurn(Assignment assignment, Semaphore permits, boolean isLane) {
        this.assignment = assignment;
        this.permits = permits;
        this.isLane = isLane;
    }

    /** Returns the turn of the thread that handles the partition's pages. */
    static HandlerTurn ofPartition(Assignment assignment, Semaphore permits) {
        return new HandlerTurn(assignment, permits, false);
    }

    /** Returns the turn of a thread that handles one lane of the partition. */
    static HandlerTurn ofLane(Assignment assignment, Semaphore permits) {
        return new HandlerTurn(assignment, permits, true);
    }

    HandlerClock clock() {
        return clock;
    }

    /** Waits for a permit. Until then a thread of pages counts as not running: the partition may be released. */
    void begin() {
        awaitTurn();
        permits.acquireUninterruptibly();
        hasPermit = true;
        if (!isLane) {
            assignment.beginTurn();
        }
    }

    /** Gives the permit back. */
    void end() {
        if (hasPermit) {
            hasPermit = false;
            permits.release();
        }
    }

    private void awaitTurn() {
        if (!isLane) {
            assignment.awaitTurn();
        }
    }

    /** Begins the event at the offset, or events from there on; returns {@code false} if they are left to the next owner. */
    boolean beginEvents(long offset) {
        return isLane ? assignment.beginLaneEvent(offset) : !assignment.isEnding();
    }

    /**
     * Waits for the delay without a permit, and then for a permit. Ends at once when the partition ends.
     *
     * @return whether no further event is handled; the thread then may have no permit
     */
    boolean isEndingAfter(long delayMs) {
        end();
        awaitTurn();
        await(delayMs);
        if (!assignment.isEnding()) {
            begin();
        }
        return assignment.isEnding();
    }

    /** Waits for the delay or the end of the partition. Only foreign code interrupts this thread: it waits on. */
    private void await(long delayMs) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(delayMs);
        for (long left = deadline - System.nanoTime();
                left > 0 && !assignment.isEnding();
                left = deadline - System.nanoTime()) {
            try {
                assignment.awaitEnding(left);
            } catch (InterruptedException e) {
                LOG.debug("A delay of {} was interrupted by foreign code; continuing", assignment.name(), e);
            }
        }
    }

    /**
     * Does work that is no call of the handler without a permit, and then waits for a permit, unless the partition ends.
     * The partition is not released while the work is done.
     */
    boolean withoutPermit(BooleanSupplier work) {
        end();
        try {
            return work.getAsBoolean();
        } finally {
            if (!assignment.isEnding()) {
                begin();
            }
        }
    }

    /** Does work as {@link #withoutPermit(BooleanSupplier)} does. */
    void withoutPermit(Runnable work) {
        withoutPermit(() -> {
            work.run();
            return true;
        });
    }
}
