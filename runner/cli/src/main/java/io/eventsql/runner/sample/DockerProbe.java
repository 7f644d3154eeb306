package io.eventsql.runner.sample;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Samples a container with {@code docker stats}, which takes about two seconds, so that not every second has a value.
 */
final class DockerProbe implements Probe {
    private static final long TIMEOUT_SECONDS = 10;

    private final String name;
    private final String container;
    private final RateCounter read = new RateCounter();
    private final RateCounter written = new RateCounter();

    DockerProbe(String name, String container) {
        this.name = name;
        this.container = container;
    }

    @Override
    public List<String> columns() {
        return List.of(
                name + ".cpu_cores", name + ".rss_mb", name + ".read_mb_per_second", name + ".write_mb_per_second");
    }

    @Override
    public List<@Nullable Double> sample(long nowNanos) throws IOException, InterruptedException {
        Process docker = new ProcessBuilder("docker", "stats", "--no-stream", "--format", "{{json .}}", container)
                .redirectErrorStream(true)
                .start();
        try {
            docker.getOutputStream().close();
            String output = new String(docker.getInputStream().readAllBytes(), UTF_8).strip();
            if (!docker.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS) || docker.exitValue() != 0) {
                throw new IOException("docker stats failed: " + output);
            }
            DockerStats stats = DockerStats.of(output);
            return Arrays.<@Nullable Double>asList(
                    stats.cpuCores(),
                    stats.memoryMb(),
                    read.update(stats.readMb(), nowNanos),
                    written.update(stats.writtenMb(), nowNanos));
        } finally {
            docker.destroy();
        }
    }
}
