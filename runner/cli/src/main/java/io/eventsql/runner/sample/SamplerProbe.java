package io.eventsql.runner.sample;

import java.util.Collections;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Samples what sampling itself takes, as a share of all processors' time. */
final class SamplerProbe implements Probe {
    private static final double NANOS_PER_SECOND = 1e9;
    private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();

    private final LongSupplier cpuNanos;
    private final RateCounter cpu = new RateCounter();

    /** @param cpuNanos the CPU time of all sampling threads and of the processes that answer them, so far */
    SamplerProbe(LongSupplier cpuNanos) {
        this.cpuNanos = cpuNanos;
    }

    @Override
    public List<String> columns() {
        return List.of("runner" + ResourceSeries.SAMPLER_SHARE);
    }

    @Override
    public List<@Nullable Double> sample(long nowNanos) {
        Double cores = cpu.update(cpuNanos.getAsLong() / NANOS_PER_SECOND, nowNanos);
        return Collections.singletonList(cores == null ? null : (Double) (cores / PROCESSORS));
    }
}
