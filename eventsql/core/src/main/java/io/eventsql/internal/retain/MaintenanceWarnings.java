package io.eventsql.internal.retain;

import io.eventsql.internal.shard.Shard;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Logs why maintenance has left out partitions or tables: each reason at once, and again once in {@link #REPEATED}. For one thread.
 */
final class MaintenanceWarnings {
    private static final Logger LOG = LoggerFactory.getLogger(MaintenanceWarnings.class);
    private static final Duration REPEATED = Duration.ofMinutes(10);

    private final String of;
    private final Shard shard;
    /** When each reason was logged (nano time). */
    private final Map<String, Long> logged = new HashMap<>();

    MaintenanceWarnings(String of, Shard shard) {
        this.of = of;
        this.shard = shard;
    }

    /** @param reason a sentence that names the partition or table */
    void add(String reason) {
        long now = System.nanoTime();
        logged.values().removeIf(at -> now - at >= REPEATED.toNanos());
        if (logged.putIfAbsent(reason, now) == null) {
            LOG.warn("{} on {}: {}; this is retried, and the rest continues", of, shard, reason);
        }
    }
}
