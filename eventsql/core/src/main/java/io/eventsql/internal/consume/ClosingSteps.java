package io.eventsql.internal.consume;

import java.time.Duration;

/**
 * Takes the steps of closing one after the other. An interrupt makes them short, but none is left out: what has not ended would keep
 * running, and nothing could close it any more. For one thread.
 */
public final class ClosingSteps {
    private CloseDeadline deadline;
    private boolean inTime = true;
    private boolean interrupted;

    /** @param deadline for all steps together */
    public ClosingSteps(CloseDeadline deadline) {
        this.deadline = deadline;
    }

    /** One step. It can be repeated after an interrupt. */
    @FunctionalInterface
    public interface Step {
        /** Returns whether it has ended in time. */
        boolean run(CloseDeadline deadline) throws InterruptedException;
    }

    /** Takes a step; another time with a deadline that has passed if it is interrupted. */
    public void take(Step step) {
        noticeInterrupt();
        try {
            inTime &= step.run(deadline);
        } catch (InterruptedException e) {
            hurry();
            repeat(step);
        }
        noticeInterrupt();
    }

    private void repeat(Step step) {
        try {
            inTime &= step.run(deadline);
        } catch (InterruptedException e) {
            inTime = false; // interrupted once more, while it was ending
        }
    }

    private void noticeInterrupt() {
        if (Thread.interrupted()) {
            hurry();
        }
    }

    private void hurry() {
        interrupted = true;
        inTime = false;
        deadline = CloseDeadline.after(Duration.ZERO);
    }

    /**
     * Sets the interrupt flag again if there was an interrupt.
     *
     * @return whether all steps have ended in time, without an interrupt
     */
    public boolean end() {
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return inTime;
    }
}
