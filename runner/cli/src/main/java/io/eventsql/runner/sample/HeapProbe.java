package io.eventsql.runner.sample;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** Samples the used heap of this process. */
final class HeapProbe implements Probe {
    private static final double BYTES_PER_MB = 1e6;

    @Override
    public List<String> columns() {
        return List.of("runner.heap_mb");
    }

    @Override
    public List<@Nullable Double> sample(long nowNanos) {
        Runtime runtime = Runtime.getRuntime();
        return List.of((runtime.totalMemory() - runtime.freeMemory()) / BYTES_PER_MB);
    }
}
