package io.eventsql.runner.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DiskProbeTest {
    private static final long SECOND = 1_000_000_000;

    @TempDir
    private Path root;

    @Test
    void sample_disks_areCountedWithoutPartitionsAndStackedDevices() throws IOException {
        Files.createDirectories(root.resolve("sys/block/vda/device"));
        Files.createDirectories(root.resolve("sys/block/vdb/device"));
        Files.createDirectories(root.resolve("sys/block/dm-0"));
        Files.createDirectory(root.resolve("proc"));
        DiskProbe probe = new DiskProbe(root);

        diskstats(1_000, 2_000);
        assertThat(probe.sample(0)).containsExactly(null, null);
        diskstats(1_000 + 2 * 1_000, 2_000 + 2 * 4_000);

        assertThat(probe.sample(4 * SECOND))
                .usingElementComparator((a, b) -> Math.abs(a - b) < 1e-9 ? 0 : Double.compare(a, b))
                .containsExactly(2 * 2 * 1_000 * 512 / 4e6, 2 * 2 * 4_000 * 512 / 4e6);
    }

    /** Writes the same values for each device. Two of the four are disks. */
    private void diskstats(long read, long written) throws IOException {
        StringBuilder lines = new StringBuilder();
        for (String device : new String[] {"vda", "vda1", "vdb", "dm-0"}) {
            lines.append(" 254 0 %s 10 20 %d 30 40 50 %d 60 0 70 80 0 0 0 0 0 0\n".formatted(device, read, written));
        }
        Files.writeString(root.resolve("proc/diskstats"), lines);
    }
}
