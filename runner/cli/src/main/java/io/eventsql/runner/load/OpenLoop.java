package io.eventsql.runner.load;

import io.eventsql.runner.workload.KeyShare;

/**
 * Calls at set times, whether or not earlier calls were answered, from one thread: order within a key is the order of
 * the slots. A target that blocks delays the calls, not their intended times, so nothing is left out of the latency.
 */
public final class OpenLoop implements LoadGenerator {
    /**
     * The shortest wait: slots that fall due meanwhile are sent together after it. It shows as schedule delay, and
     * leaves the processor to others at high rates.
     */
    static final long PARK_MIN_NANOS = 250_000;

    /** The longest wait between two looks at the stop signal. */
    private static final long PARK_MAX_NANOS = 100_000_000;

    /** The last slots of a phase are late by the waits above, and still its own; later than this they are missed. */
    static final long LATE_MAX_NANOS = 100_000_000;

    private final LoadContext context;
    private final long eventsPerSecond;
    private final long inFlightMax;

    /** @param eventsPerSecond 1 to 1,000,000 */
    public OpenLoop(LoadContext context, long eventsPerSecond) {
        this(context, eventsPerSecond, Long.MAX_VALUE);
    }

    /**
     * One that leaves slots out while too much is unanswered; they are missed, and never sent later.
     *
     * @param eventsPerSecond 1 to 1,000,000
     * @param inFlightMax how many events of the phase may be unanswered
     */
    public OpenLoop(LoadContext context, long eventsPerSecond, long inFlightMax) {
        this.context = context;
        this.eventsPerSecond = eventsPerSecond;
        this.inFlightMax = inFlightMax;
    }

    @Override
    public long send(LoadPhase phase, LoadListener listener) {
        SendSchedule schedule =
                new SendSchedule(phase.startNanos(), eventsPerSecond, context.eventsPerCall(), phase.events());
        KeyShare keys = context.source().splitKeys(1).getFirst();
        long sent = 0;
        for (long slot = 0; slot < schedule.slots(); slot++) {
            long intended = schedule.nanosOf(slot);
            if (intended >= phase.endNanos() || !awaitSlot(intended)) {
                break;
            }
            int count = schedule.eventsIn(slot);
            if (isMissed(phase, listener, sent + count)) {
                listener.missed(intended, count);
                continue;
            }
            LoadCall call = context.nextCall(context.streamOf(slot), keys, phase, count, intended);
            listener.called(intended, context.clock().nanos());
            AsyncCall.send(context, listener, call);
            sent += count;
        }
        return sent;
    }

    @Override
    public void awaitAnswers(LoadListener listener, long sentEvents) {
        AsyncCall.awaitAnswers(context, listener, sentEvents);
    }

    /** Also well after the phase's end, when a target that blocks has held the caller up until then. */
    private boolean isMissed(LoadPhase phase, LoadListener listener, long sentThen) {
        return inFlightMax < Long.MAX_VALUE
                && (sentThen - listener.answeredEvents() > inFlightMax
                        || context.clock().nanos() - phase.endNanos() >= LATE_MAX_NANOS);
    }

    /** Waits for the time of a slot; {@code false} after a stop signal. */
    private boolean awaitSlot(long intendedNanos) {
        while (!context.stop().isRaised()) {
            long remaining = intendedNanos - context.clock().nanos();
            if (remaining <= 0) {
                return true;
            }
            context.clock().parkNanos(Math.clamp(remaining, PARK_MIN_NANOS, PARK_MAX_NANOS));
        }
        return false;
    }
}
