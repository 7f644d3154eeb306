package io.eventsql.runner.sample;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Samples how busy all processors of the machine are, from {@code /proc/stat}. Time that a hypervisor gives to other
 * machines counts as busy, because a process waits for it.
 */
final class MachineProbe implements Probe {
    /** Counters after the name: user, nice, system, idle, iowait, irq, softirq, steal. Those after it repeat others. */
    private static final int COUNTERS = 8;

    private static final int IDLE = 3;
    private static final int IO_WAIT = 4;

    private static final Pattern PROCESSOR = Pattern.compile("cpu\\d+ .*");

    private record Ticks(long busy, long all) {}

    private final Path file;
    private @Nullable Ticks last;

    /** @param root the root of the file system; another folder in tests */
    MachineProbe(Path root) {
        this.file = root.resolve("proc/stat");
    }

    /**
     * Returns the number of processors of the machine, of which a container may use fewer. On a system that is not
     * Linux, it is the number that this process may use.
     *
     * @param root the root of the file system; another folder in tests
     */
    static int processors(Path root) {
        long processors = 0;
        try (Stream<String> lines = Files.lines(root.resolve("proc/stat"))) {
            processors = lines.filter(PROCESSOR.asMatchPredicate()).count();
        } catch (IOException e) {
            // Another system does not have the file.
        }
        return processors == 0 ? Runtime.getRuntime().availableProcessors() : (int) processors;
    }

    @Override
    public List<String> columns() {
        return List.of(ResourceSeries.MACHINE_BUSY_SHARE);
    }

    @Override
    public List<@Nullable Double> sample(long nowNanos) throws IOException {
        Ticks now = read();
        Ticks before = last;
        last = now;
        return Collections.singletonList(before == null ? null : busyShare(before, now));
    }

    /** Returns {@code null} if no time has passed, or if a counter was reset. */
    private static @Nullable Double busyShare(Ticks before, Ticks now) {
        return now.all > before.all && now.busy >= before.busy
                ? (Double) ((now.busy - before.busy) / (double) (now.all - before.all))
                : null;
    }

    private Ticks read() throws IOException {
        try (Stream<String> lines = Files.lines(file)) {
            String[] fields = lines.findFirst().orElse("").strip().split("\\s+", -1);
            if (fields.length <= COUNTERS) {
                throw new IOException(file + " does not begin with the counters of all processors");
            }
            long all = 0;
            for (int counter = 1; counter <= COUNTERS; counter++) {
                all += Long.parseLong(fields[counter]);
            }
            long idle = Long.parseLong(fields[1 + IDLE]) + Long.parseLong(fields[1 + IO_WAIT]);
            return new Ticks(all - idle, all);
        }
    }
}
