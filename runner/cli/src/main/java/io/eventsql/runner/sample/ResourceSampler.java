package io.eventsql.runner.sample;

import io.eventsql.benchmark.settings.DatabaseAddress;
import io.eventsql.runner.load.LoadClock;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Samples processes and databases every second. Each source has its own thread, so that a slow one delays neither the
 * others nor the load. The first failure of each source is reported. Thread-safe.
 */
public final class ResourceSampler implements AutoCloseable {
    private static final long NANOS_PER_SECOND = 1_000_000_000;
    private static final double BYTES_PER_MB = 1e6;
    private static final int PROCESSORS = MachineProbe.processors(Path.of("/"));
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private record Row(int second, int column) {}

    private final LoadClock clock;
    private final LongSupplier originNanos;
    private final Consumer<String> problems;
    private final List<Thread> threads = new ArrayList<>();
    private final CountDownLatch closed = new CountDownLatch(1);
    private final Map<Row, Double> values = new ConcurrentHashMap<>();
    private final List<String> columns = new ArrayList<>();
    /** The CPU time of all sampling threads, and of the processes that answer them. */
    private final LongAdder cpuNanos = new LongAdder();

    private ResourceSampler(LoadClock clock, LongSupplier originNanos, Consumer<String> problems) {
        this.clock = clock;
        this.originNanos = originNanos;
        this.problems = problems;
    }

    /**
     * Starts sampling this process, as {@code runner}, and others.
     *
     * @param databases the databases, named {@code shard0} and so on
     * @param originNanos the start of second 0 on the monotonic clock; {@link Long#MAX_VALUE} while unknown
     * @param problems receives the first failure of each source
     */
    public static ResourceSampler start(
            List<SampledProcess> processes,
            List<DatabaseAddress> databases,
            LoadClock clock,
            LongSupplier originNanos,
            Consumer<String> problems) {
        ProcessTree tree = new ProcessTree(Path.of("/proc"));
        List<Probe> probes = new ArrayList<>();
        probes.add(new ProcessProbe("runner", ProcessHandle.current().pid(), tree));
        probes.add(Probe.of("runner.heap_mb", now -> heapMb()));
        probes.add(new DiskProbe(Path.of("/")));
        probes.add(new MachineProbe(Path.of("/")));
        for (SampledProcess process : processes) {
            Long id = process.process();
            probes.add(
                    id == null
                            ? new DockerProbe(process.name(), String.valueOf(process.container()))
                            : new ProcessProbe(process.name(), id, tree));
        }
        for (int shard = 0; shard < databases.size(); shard++) {
            probes.add(new DatabaseProbe("shard" + shard, databases.get(shard), tree));
        }
        return start(probes, clock, originNanos, problems);
    }

    static ResourceSampler start(
            List<Probe> probes, LoadClock clock, LongSupplier originNanos, Consumer<String> problems) {
        ResourceSampler sampler = new ResourceSampler(clock, originNanos, problems);
        List<Probe> all = new ArrayList<>(probes);
        RateCounter cpu = new RateCounter();
        all.add(Probe.of(
                "runner" + ResourceSeries.SAMPLER_SHARE, now -> share(cpu.update(sampler.cpuNanos.sum() / 1e9, now))));
        for (Probe probe : all) {
            int firstColumn = sampler.columns.size();
            sampler.columns.addAll(probe.columns());
            sampler.threads.add(Thread.ofPlatform()
                    .daemon()
                    .name("sampler-" + probe.columns().getFirst())
                    .start(() -> sampler.sample(probe, firstColumn)));
        }
        return sampler;
    }

    private static Double heapMb() {
        Runtime runtime = Runtime.getRuntime();
        return (runtime.totalMemory() - runtime.freeMemory()) / BYTES_PER_MB;
    }

    /** Returns processors in use as a share of all that the machine has. */
    private static @Nullable Double share(@Nullable Double cores) {
        return cores == null ? null : (Double) (cores / PROCESSORS);
    }

    private void sample(Probe probe, int firstColumn) {
        boolean failed = false;
        try {
            long cpuBefore = 0;
            do {
                long now = clock.nanos();
                try {
                    store(probe.sample(now), now, firstColumn);
                } catch (InterruptedException e) {
                    return;
                } catch (Exception e) {
                    if (!failed && closed.getCount() > 0) {
                        problems.accept("Sampling " + probe.columns().getFirst() + " failed: " + e.getMessage());
                    }
                    failed = true;
                }
                long cpuNow = THREADS.getCurrentThreadCpuTime() + probe.otherCpuNanos();
                cpuNanos.add(cpuNow - cpuBefore);
                cpuBefore = cpuNow;
            } while (!closed.await(untilNextSecond(), TimeUnit.NANOSECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            probe.close();
        }
    }

    /** Stores a sample. A sample at the end of a second belongs to that second. */
    private void store(List<@Nullable Double> seen, long nowNanos, int firstColumn) {
        long origin = originNanos.getAsLong();
        if (origin == Long.MAX_VALUE) {
            return;
        }
        int second = (int) Math.round((double) (nowNanos - origin) / NANOS_PER_SECOND) - 1;
        for (int i = 0; i < seen.size(); i++) {
            Double value = seen.get(i);
            if (value != null && second >= 0) {
                values.put(new Row(second, firstColumn + i), value);
            }
        }
    }

    private long untilNextSecond() {
        long origin = originNanos.getAsLong();
        long now = clock.nanos();
        return origin > now ? NANOS_PER_SECOND : NANOS_PER_SECOND - (now - origin) % NANOS_PER_SECOND;
    }

    /**
     * Returns the samples so far.
     *
     * @param seconds the number of seconds in the table
     */
    public ResourceSeries table(int seconds) {
        List<Integer> times = new ArrayList<>();
        for (int second = 0; second < seconds; second++) {
            times.add(second);
        }
        Map<String, List<@Nullable Double>> table = new LinkedHashMap<>();
        for (int column = 0; column < columns.size(); column++) {
            List<@Nullable Double> ofColumn = new ArrayList<>();
            for (int second = 0; second < seconds; second++) {
                ofColumn.add(values.get(new Row(second, column)));
            }
            table.put(columns.get(column), ofColumn);
        }
        return new ResourceSeries(1, times, table);
    }

    /** Stops sampling. */
    @Override
    public void close() {
        closed.countDown();
        threads.forEach(Thread::interrupt);
    }
}
