package io.eventsql.runner.sample;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * A line of {@code docker stats --no-stream --format json}.
 *
 * @param cpuCores the processors in use
 * @param memoryMb the memory in use, in 10^6 bytes
 * @param readMb the megabytes read from disks since the container started
 * @param writtenMb the megabytes written to disks since then
 */
record DockerStats(double cpuCores, double memoryMb, double readMb, double writtenMb) {
    private static final JsonMapper JSON = JsonMapper.shared();
    private static final Pattern SIZE = Pattern.compile("([0-9.]+)\\s*([A-Za-z]+)");
    private static final double PERCENT = 100;
    private static final double BYTES_PER_MB = 1e6;
    private static final Map<String, Double> BYTES = Map.of(
            "b", 1.0, "kb", 1e3, "mb", 1e6, "gb", 1e9, "tb", 1e12, "kib", 1_024.0, "mib", 0x1p20, "gib", 0x1p30, "tib",
            0x1p40);

    /**
     * Parses a line.
     *
     * @throws IllegalArgumentException if the line has another format
     */
    static DockerStats of(String line) {
        try {
            JsonNode stats = JSON.readTree(line);
            String[] blocks = text(stats, "BlockIO").split("/", -1);
            if (blocks.length != 2) {
                throw new IllegalArgumentException("BlockIO is " + text(stats, "BlockIO"));
            }
            return new DockerStats(
                    Double.parseDouble(text(stats, "CPUPerc").replace("%", "")) / PERCENT,
                    megabytes(text(stats, "MemUsage").split("/", -1)[0]),
                    megabytes(blocks[0]),
                    megabytes(blocks[1]));
        } catch (JacksonException | IllegalArgumentException e) {
            throw new IllegalArgumentException("Unexpected output of docker stats: " + line, e);
        }
    }

    private static String text(JsonNode stats, String name) {
        @Nullable JsonNode value = stats.get(name);
        if (value == null) {
            throw new IllegalArgumentException(name + " is missing");
        }
        return value.asString();
    }

    private static double megabytes(String size) {
        Matcher matcher = SIZE.matcher(size.strip());
        Double unit = matcher.matches() ? BYTES.get(matcher.group(2).toLowerCase(Locale.ROOT)) : null;
        if (unit == null) {
            throw new IllegalArgumentException("not a size: " + size);
        }
        return Double.parseDouble(matcher.group(1)) * unit / BYTES_PER_MB;
    }
}
