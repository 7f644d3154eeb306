package io.eventsql.app.benchmark;

import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/** Lets a number of runners start at the same moment. Thread-safe. */
final class Barrier {
    /** From the last arrival to the start: long enough for every runner to ask again and hear of it. */
    static final long START_DELAY_MICROS = 500_000;

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
            startAtMicros = nowMicros + START_DELAY_MICROS;
        }
        return new BarrierState(arrived.cardinality(), runners, startAtMicros);
    }
}
