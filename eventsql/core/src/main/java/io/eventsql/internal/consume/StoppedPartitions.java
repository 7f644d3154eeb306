package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.sql.ConsumerTable.StoppedPartition;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reports the partitions that a failure stopped before a member was started: the member does not handle them. */
final class StoppedPartitions {
    private static final Logger LOG = LoggerFactory.getLogger(StoppedPartitions.class);
    private static final int SHOWN_MAX = 10;

    private StoppedPartitions() {}

    static void warn(ConsumerSpec spec, Shard shard, List<StoppedPartition> stopped) {
        for (StoppedPartition partition : stopped.subList(0, Math.min(SHOWN_MAX, stopped.size()))) {
            LOG.warn(
                    "Consumer {} of stream {}: partition {} on {} is stopped at offset {} and stays so until"
                            + " ConsumerControl.resume() (after a seek() to skip the event): {}",
                    spec.name(),
                    spec.stream(),
                    partition.partition(),
                    shard,
                    partition.nextOffset(),
                    partition.error());
        }
        if (stopped.size() > SHOWN_MAX) {
            LOG.warn(
                    "Consumer {} of stream {}: {} further partitions on {} are stopped",
                    spec.name(),
                    spec.stream(),
                    stopped.size() - SHOWN_MAX,
                    shard);
        }
    }
}
