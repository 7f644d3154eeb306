package io.eventsql.runner.limits;

import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.runner.sample.ProcessTree;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import javax.sql.DataSource;
import jdk.jfr.consumer.RecordingStream;
import org.postgresql.PGConnection;

/**
 * Records every 10 ms what the server's processes wait for or do, and all the time the pauses and long compilations of
 * this JVM.
 */
final class ActivitySampler implements AutoCloseable {
    /** What was seen at the end of a short period, or took all of it. */
    record Sample(TimeSpans.Span period, Set<String> seen) {}

    private static final Duration PERIOD = Duration.ofMillis(10);
    private static final long LATE_MICROS = 3 * PERIOD.toNanos() / 1_000;

    /** Reads shared memory only. A process in its main loop, idle, waits for an Activity. */
    private static final String ACTIVITY = """
            SELECT CASE WHEN backend_type = 'client backend' THEN coalesce(wait_event_type || ': ' || wait_event, 'CPU')
                        ELSE 'process: ' || backend_type END
            FROM pg_stat_get_activity(NULL)
            WHERE (backend_type <> 'client backend' OR state = 'active') AND pid <> pg_backend_pid()
              AND wait_event_type IS DISTINCT FROM 'Activity'""";

    private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();

    private final DataSource dataSource;
    private final List<Sample> samples = new ArrayList<>();
    private final RecordingStream recording = new RecordingStream();
    private final CompletableFuture<Double> sampling = new CompletableFuture<>();
    private volatile boolean stopped;

    private ActivitySampler(DataSource dataSource) {
        this.dataSource = dataSource;
    }

    /** Starts recording. The role must see all processes of the server (pg_read_all_stats). */
    static ActivitySampler start(DataSource dataSource) {
        ActivitySampler sampler = new ActivitySampler(dataSource);
        sampler.record("jdk.GCPhasePause", Duration.ZERO, "JVM: GC pause");
        sampler.record("jdk.ExecuteVMOperation", Duration.ofMillis(1), "JVM: VM operation above 1 ms");
        sampler.record("jdk.Compilation", PERIOD, "JVM: compilation above 10 ms");
        sampler.recording.startAsync();
        Thread.ofPlatform().daemon().name("limits-sampler").start(sampler::run);
        return sampler;
    }

    private void record(String event, Duration threshold, String what) {
        recording.enable(event).withThreshold(threshold).withoutStackTrace();
        recording.onEvent(
                event,
                seen -> add(new Sample(
                        new TimeSpans.Span(EpochMicros.of(seen.getStartTime()), EpochMicros.of(seen.getEndTime())),
                        Set.of(what))));
    }

    private void add(Sample sample) {
        synchronized (samples) {
            samples.add(sample);
        }
    }

    private void run() {
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(ACTIVITY);
                RandomAccessFile load = new RandomAccessFile("/proc/loadavg", "r")) {
            int backend = connection.unwrap(PGConnection.class).getBackendPID();
            double cpuBefore = cpuSeconds(backend);
            long last = EpochMicros.now();
            long due = System.nanoTime();
            while (!stopped) {
                LockSupport.parkNanos(due - System.nanoTime());
                due = Math.max(due + PERIOD.toNanos(), System.nanoTime());
                Set<String> seen = sample(statement, load);
                long now = EpochMicros.now();
                if (now - last > LATE_MICROS) {
                    seen.add("machine: sampler more than 20 ms late");
                }
                add(new Sample(new TimeSpans.Span(last, now), seen));
                last = now;
            }
            sampling.complete(cpuSeconds(backend) - cpuBefore);
        } catch (SQLException | IOException | RuntimeException e) {
            sampling.completeExceptionally(e);
        }
    }

    private static Set<String> sample(PreparedStatement statement, RandomAccessFile load)
            throws SQLException, IOException {
        Set<String> seen = new HashSet<>();
        load.seek(0);
        if (runnableThreads(Objects.requireNonNull(load.readLine())) > PROCESSORS) {
            seen.add("machine: more runnable threads than processors");
        }
        try (ResultSet row = statement.executeQuery()) {
            while (row.next()) {
                seen.add(row.getString(1));
            }
        }
        return seen;
    }

    /** Reads a line such as {@code 0.50 0.40 0.30 3/200 1234}: three threads run or could run. */
    static int runnableThreads(String load) {
        return Integer.parseInt(load.substring(load.lastIndexOf(' ', load.indexOf('/')) + 1, load.indexOf('/')));
    }

    /** Returns the CPU time of this thread and of its backend. */
    private static double cpuSeconds(int backend) throws IOException {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9
                + new ProcessTree(Path.of("/proc")).totalCpuSeconds(backend, System.nanoTime());
    }

    /**
     * Stops recording. Returns the CPU time that sampling has taken, in seconds.
     *
     * @throws java.util.concurrent.CompletionException if sampling failed
     */
    double finish() {
        stopped = true;
        double cpuSeconds = sampling.join();
        recording.stop();
        return cpuSeconds;
    }

    /** Returns what was recorded, in no order. */
    List<Sample> samples() {
        synchronized (samples) {
            return List.copyOf(samples);
        }
    }

    @Override
    public void close() {
        stopped = true;
        recording.close();
    }
}
