package io.eventsql.internal.relay;

import java.util.List;

/**
 * An event that cannot be appended even alone, for a reason that other events may share, such as a time limit or a full
 * disk. The event itself is the cause if another one could be appended after it had failed repeatedly, and it then fails
 * again. Used by one thread.
 */
final class SuspectEvent {
    private static final int FAILURES_BEFORE_PROBE = 2;

    private long id;
    private int failures;
    private boolean anotherSucceeded;
    private int probes;

    /**
     * Records that an event has failed alone.
     *
     * @return whether the event itself is the cause
     */
    boolean failed(long event) {
        if (failures == 0 || id != event) {
            id = event;
            failures = 0;
            anotherSucceeded = false;
        }
        failures++;
        boolean isCause = anotherSucceeded;
        anotherSucceeded = false;
        return isCause;
    }

    /** Returns whether another event should be tried, to find out whether only this one fails. */
    boolean isProbeDue() {
        return failures >= FAILURES_BEFORE_PROBE && !anotherSucceeded;
    }

    /** Returns whether this is the event that has failed. */
    boolean is(long event) {
        return failures > 0 && id == event;
    }

    /** Returns the event to try next, each of them in its turn. */
    <T> T chooseOther(List<T> others) {
        return others.get(probes++ % others.size());
    }

    /** Records that another event could be appended. */
    void anotherSucceeded() {
        anotherSucceeded = true;
    }

    /** Forgets the event, because it was moved. */
    void clear() {
        failures = 0;
        anotherSucceeded = false;
    }
}
