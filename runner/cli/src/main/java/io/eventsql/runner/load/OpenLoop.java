package io.eventsql.runner.load;

import io.eventsql.Event;
import io.eventsql.runner.workload.KeyShare;
import java.util.List;

/**
 * Calls at set times, whether or not earlier calls were answered, from one thread: order within a key is the order of
 * the slots. A target that blocks delays the calls, not their intended times, so nothing is left out of the latency.
 */
public final class OpenLoop implements LoadGenerator {
    /**
     * The shortest wait: slots that fall due meanwhile are sent together after it. It shows as schedule delay, and
     * leaves the processor to others at high rates.
     */
    static final long SHORTEST_PARK_NANOS = 250_000;

    /** The longest wait between two looks at the stop signal. */
    private static final long LONGEST_PARK_NANOS = 100_000_000;

    private final LoadParts parts;
    private final long eventsPerSecond;

    /** @param eventsPerSecond 1 to 1,000,000 */
    public OpenLoop(LoadParts parts, long eventsPerSecond) {
        this.parts = parts;
        this.eventsPerSecond = eventsPerSecond;
    }

    @Override
    public long run(LoadPhase phase, LoadListener listener) {
        SendSchedule schedule =
                new SendSchedule(phase.startNanos(), eventsPerSecond, parts.eventsPerCall(), phase.events());
        KeyShare keys = parts.source().shares(1).getFirst();
        long sent = 0;
        for (long slot = 0; slot < schedule.slots(); slot++) {
            long intended = schedule.nanosOf(slot);
            if (intended >= phase.endNanos() || !awaitSlot(intended)) {
                break;
            }
            int count = schedule.eventsIn(slot);
            List<Event> events = parts.source()
                    .events(
                            keys,
                            phase.warmup(),
                            schedule.firstEvent(slot),
                            count,
                            phase.anchor().epochMicrosAt(intended));
            listener.called(intended, parts.clock().nanos());
            AsyncCall.send(parts, listener, events, intended);
            sent += count;
        }
        AsyncCall.awaitAnswers(parts, listener, sent);
        return sent;
    }

    /** Waits for the time of a slot; {@code false} after a stop signal. */
    private boolean awaitSlot(long intendedNanos) {
        while (!parts.stop().isRaised()) {
            long remaining = intendedNanos - parts.clock().nanos();
            if (remaining <= 0) {
                return true;
            }
            parts.clock().parkNanos(Math.clamp(remaining, SHORTEST_PARK_NANOS, LONGEST_PARK_NANOS));
        }
        return false;
    }
}
