package io.eventsql.flink.sink;

import io.eventsql.flink.sink.KeyRoutes.Target;
import java.util.List;
import java.util.UUID;

/**
 * Events that are appended to one partition together, or not at all: what a checkpoint contains of a sink. It never changes,
 * whatever the parallelism and the maps are when it is appended, so that the database recognises it.
 *
 * @param producer the writer that has made it
 * @param number its number within the producer and the partition: from 1, without gaps
 * @param mapVersion that of the map by which the events were routed
 */
record EventBatch(UUID producer, long number, String stream, Target target, int mapVersion, List<EncodedEvent> events) {
    @Override
    public String toString() {
        return "batch " + number + " of producer " + producer + " with " + events.size() + " events for partition "
                + target.partition() + " of stream " + stream + " on shard " + target.shard();
    }
}
