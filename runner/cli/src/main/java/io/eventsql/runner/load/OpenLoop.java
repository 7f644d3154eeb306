package io.eventsql.runner.load;

/**
 * Makes calls on a fixed schedule from one thread, whether or not earlier calls were answered. Order within a key is
 * the order of the slots. A blocking target delays the calls but not their intended times, so the delay is included in
 * the latency.
 */
public final class OpenLoop implements LoadGenerator {
    /**
     * The minimum wait. Slots that become due during the wait are sent together afterwards. This shows up as schedule
     * delay and saves CPU time at high rates.
     */
    static final long PARK_MIN_NANOS = 250_000;

    /** The maximum interval between checks of the stop signal. */
    private static final long PARK_MAX_NANOS = 100_000_000;

    /** The maximum delay of the last slots of a phase, which may be late by the waits above. Later slots are missed. */
    static final long LATE_MAX_NANOS = 100_000_000;

    private final LoadContext context;
    private final long eventsPerSecond;
    private final long inFlightMax;

    /** @param eventsPerSecond the rate, 1 to 1,000,000 */
    public OpenLoop(LoadContext context, long eventsPerSecond) {
        this(context, eventsPerSecond, Long.MAX_VALUE);
    }

    /**
     * Creates a load that skips slots while too many events are unanswered. Missed slots are never sent later.
     *
     * @param eventsPerSecond the rate, 1 to 1,000,000
     * @param inFlightMax the maximum number of unanswered events of the phase
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
            call.publishAsync(context.clock(), listener);
            sent += count;
        }
        return sent;
    }

    @Override
    public LoadContext context() {
        return context;
    }

    /** Also returns true well after the end of the phase, if a blocking target delayed the caller until then. */
    private boolean isMissed(LoadPhase phase, LoadListener listener, long sentThen) {
        return inFlightMax < Long.MAX_VALUE
                && (sentThen - listener.answeredEvents() > inFlightMax
                        || context.clock().nanos() - phase.endNanos() >= LATE_MAX_NANOS);
    }

    /** Waits until a slot is due. Returns {@code false} after a stop signal. */
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
