package io.eventsql.app.benchmark;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/** Synchronizes the start of several runners. Thread-safe. */
final class Barrier {
    /** The minimum time between the last arrival and the start, sufficient for every runner to poll the start time. */
    static final long START_DELAY_MICROS = 500_000;

    /** Runs start at a full second, so that the runners and the app count the same seconds. */
    private static final long MICROS_PER_SECOND = 1_000_000;

    private final int runners;
    private final BitSet arrived = new BitSet();
    private @Nullable Long startAtMicros;

    /** @param runners the number of expected runners, at least 1 */
    Barrier(int runners) {
        this.runners = runners;
    }

    int runners() {
        return runners;
    }

    /** Records the arrival of a runner. Idempotent. The start time is fixed once all runners have arrived. */
    synchronized BarrierState arrive(int runner, long nowMicros) {
        arrived.set(runner);
        if (startAtMicros == null && arrived.cardinality() >= runners) {
            startAtMicros = Math.ceilDiv(nowMicros + START_DELAY_MICROS, MICROS_PER_SECOND) * MICROS_PER_SECOND;
        }
        return new BarrierState(arrived.cardinality(), runners, startAtMicros, nowMicros);
    }
}
