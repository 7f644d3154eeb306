package io.eventsql.runner.sample;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Samples the reads and writes of all disks of the machine from {@code /proc/diskstats}. The counters of a process in
 * {@code /proc/<id>/io} are unsuitable: a write of 8 KB counts the whole page-cache folio that it touches, often a
 * hundred times as much.
 */
final class DiskProbe implements Probe {
    private static final int NAME = 2;
    private static final int SECTORS_READ = 5;
    private static final int SECTORS_WRITTEN = 9;
    /** The unit of the file, independent of the sector size of the disk. */
    private static final double SECTOR_BYTES = 512;

    private static final double BYTES_PER_MB = 1e6;

    private final Path root;
    private final RateCounter read = new RateCounter();
    private final RateCounter written = new RateCounter();

    /** @param root the root of the file system; another folder in tests */
    DiskProbe(Path root) {
        this.root = root;
    }

    @Override
    public List<String> columns() {
        return List.of("machine.disk_read_mb_per_second", "machine.disk_write_mb_per_second");
    }

    @Override
    public List<@Nullable Double> sample(long nowNanos) throws IOException {
        double sectorsRead = 0;
        double sectorsWritten = 0;
        for (String line : Files.readAllLines(root.resolve("proc/diskstats"))) {
            String[] fields = line.strip().split("\\s+", -1);
            if (isDisk(fields[NAME])) {
                sectorsRead += Double.parseDouble(fields[SECTORS_READ]);
                sectorsWritten += Double.parseDouble(fields[SECTORS_WRITTEN]);
            }
        }
        return Arrays.<@Nullable Double>asList(
                read.update(sectorsRead * SECTOR_BYTES / BYTES_PER_MB, nowNanos),
                written.update(sectorsWritten * SECTOR_BYTES / BYTES_PER_MB, nowNanos));
    }

    /** Returns false for partitions and stacked devices, which would count twice. */
    private boolean isDisk(String name) {
        return Files.exists(root.resolve("sys/block").resolve(name).resolve("device"));
    }
}
