package io.eventsql.runner.sample;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Samples CPU and memory of a process and its descendants. Memory is read every {@value #MEMORY_SECONDS} seconds, and
 * repeated in between.
 */
final class ProcessProbe implements Probe {
    static final int MEMORY_SECONDS = 10;

    private static final long MEMORY_NANOS = Duration.ofSeconds(MEMORY_SECONDS).toNanos();

    private final String name;
    private final long process;
    private final ProcessTree tree;
    private final RateCounter cpu = new RateCounter();
    /** CPU time of all processes seen, including ended ones, so that the sum never decreases. */
    private final Map<Long, Double> cpuSeconds = new HashMap<>();

    private @Nullable Double residentMb;
    private long residentAtNanos;

    ProcessProbe(String name, long process, ProcessTree tree) {
        this.name = name;
        this.process = process;
        this.tree = tree;
    }

    @Override
    public List<String> columns() {
        return List.of(name + ".cpu_cores", name + ".rss_mb");
    }

    @Override
    public List<@Nullable Double> sample(long nowNanos) throws IOException {
        Map<Long, Double> members = tree.cpuSeconds(process, nowNanos);
        cpuSeconds.putAll(members);
        double cpuSum =
                cpuSeconds.values().stream().mapToDouble(Double::doubleValue).sum();
        if (residentMb == null || nowNanos - residentAtNanos >= MEMORY_NANOS) {
            residentMb = tree.residentMb(members.keySet());
            residentAtNanos = nowNanos;
        }
        return Arrays.<@Nullable Double>asList(cpu.update(cpuSum, nowNanos), residentMb);
    }
}
