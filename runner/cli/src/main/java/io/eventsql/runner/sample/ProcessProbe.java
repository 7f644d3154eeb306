package io.eventsql.runner.sample;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A process with its descendants: processor cores, memory, disk. */
final class ProcessProbe implements Probe {
    private final String name;
    private final long process;
    private final ProcessTree tree;
    private final Rate cpu = new Rate();
    private final Rate read = new Rate();
    private final Rate written = new Rate();
    /** Of all processes seen, those that have ended too: the sum only grows. */
    private final Map<Long, Double> cpuSeconds = new HashMap<>();

    ProcessProbe(String name, long process, ProcessTree tree) {
        this.name = name;
        this.process = process;
        this.tree = tree;
    }

    @Override
    public List<String> columns() {
        return List.of(
                name + ".cpu_cores", name + ".rss_mb", name + ".read_mb_per_second", name + ".write_mb_per_second");
    }

    @Override
    public List<@Nullable Double> look(long nowNanos) throws IOException {
        ProcessTree.Usage usage = tree.usage(process);
        cpuSeconds.putAll(usage.cpuSeconds());
        double cpuSum =
                cpuSeconds.values().stream().mapToDouble(Double::doubleValue).sum();
        Double readMb = usage.readMb();
        Double writtenMb = usage.writtenMb();
        return Arrays.<@Nullable Double>asList(
                cpu.at(cpuSum, nowNanos),
                usage.residentMb(),
                readMb == null ? null : read.at(readMb, nowNanos),
                writtenMb == null ? null : written.at(writtenMb, nowNanos));
    }
}
