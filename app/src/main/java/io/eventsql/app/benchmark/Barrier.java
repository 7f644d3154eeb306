package io.eventsql.app.benchmark;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/** Lets a number of runners start at the same moment. Thread-safe. */
final class Barrier {
    /** From the last arrival to the start at least: long enough for every runner to ask again and hear of it. */
    static final long START_DELAY_MICROS = 500_000;

    /** A start is a whole second, so that the seconds runners count are those the app counts. */
    private static final long MICROS_PER_SECOND = 1_000_000;

    private final int runners;
    private final BitSet arrived = new BitSet();
    private @Nullable Long startAtMicros;

    /** @param runners how many different runners it waits for, at least 1 */
    Barrier(int runners) {
        this.runners = runners;
    }

    int runners() {
        return runners;
    }

    /** Lets a runner arrive, again or for the first time. Once all have, the start stays the same for ever. */
    synchronized BarrierState arrive(int runner, long nowMicros) {
        arrived.set(runner);
        if (startAtMicros == null && arrived.cardinality() >= runners) {
            startAtMicros = Math.ceilDiv(nowMicros + START_DELAY_MICROS, MICROS_PER_SECOND) * MICROS_PER_SECOND;
        }
        return new BarrierState(arrived.cardinality(), runners, startAtMicros, nowMicros);
    }
}
