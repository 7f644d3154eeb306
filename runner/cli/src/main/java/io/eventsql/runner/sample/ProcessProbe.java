package io.eventsql.runner.sample;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Samples CPU and memory of a process and its descendants. */
final class ProcessProbe implements Probe {
    private final String name;
    private final long process;
    private final ProcessTree tree;
    private final RateCounter cpu = new RateCounter();
    /** CPU time of all processes seen, including ended ones, so that the sum never decreases. */
    private final Map<Long, Double> cpuSeconds = new HashMap<>();

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
        ProcessTree.Usage usage = tree.usage(process);
        cpuSeconds.putAll(usage.cpuSeconds());
        double cpuSum =
                cpuSeconds.values().stream().mapToDouble(Double::doubleValue).sum();
        return Arrays.<@Nullable Double>asList(cpu.update(cpuSum, nowNanos), usage.residentMb());
    }
}
