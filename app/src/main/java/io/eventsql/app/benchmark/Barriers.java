package io.eventsql.app.benchmark;

import java.util.function.LongSupplier;

/** The newest {@value #BARRIERS_MAX} barriers, identified by run and name. Thread-safe. */
final class Barriers {
    static final int BARRIERS_MAX = 200;

    private final BoundedMap<BarrierName, Barrier> barriers = new BoundedMap<>(BARRIERS_MAX);
    private final LongSupplier epochMicros;

    /** @param epochMicros the clock for start times */
    Barriers(LongSupplier epochMicros) {
        this.epochMicros = epochMicros;
    }

    /**
     * Records the arrival of a runner. The first one determines the number of expected runners.
     *
     * @throws IllegalStateException if the barrier expects another number of runners
     */
    BarrierState arrive(String run, String name, int runner, int runners) {
        Barrier barrier = barriers.getOrCreate(new BarrierName(run, name), () -> new Barrier(runners));
        if (barrier.runners() != runners) {
            throw new IllegalStateException("The barrier " + name + " of run " + run + " waits for " + barrier.runners()
                    + " runners, not for " + runners);
        }
        return barrier.arrive(runner, epochMicros.getAsLong());
    }

    void forget(String run) {
        barriers.removeIf(barrier -> barrier.run().equals(run));
    }

    private record BarrierName(String run, String name) {}
}
