package io.eventsql.flink.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;

import io.eventsql.Compaction;
import io.eventsql.Event;
import io.eventsql.StreamSpec;
import io.eventsql.flink.FlinkFixture;
import io.eventsql.flink.sink.KeyRoutes.PartitionMap;
import io.eventsql.flink.sink.KeyRoutes.Target;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Sinks while keys move between shards, and afterwards: no event is stored where the library does not look for it. */
@Timeout(120)
class SinkOfMovedKeysIT {
    private static final Duration PATIENT = Duration.ofSeconds(30);
    private static final int KEYS = 100;

    private static BatchAppender appender(FlinkFixture cluster, String stream, Duration failureTimeout) {
        return new BatchAppender(SinkFixture.settings(
                cluster.urls(),
                FlinkFixture.server().username(),
                FlinkFixture.server().password(),
                stream,
                DeliveryGuarantee.EXACTLY_ONCE,
                failureTimeout));
    }

    private static EventBatch batch(String stream, Target target, int mapVersion, EncodedEvent... events) {
        return new EventBatch(UUID.randomUUID(), 1, stream, target, mapVersion, List.of(events));
    }

    /** Returns the shard, the partition and the key of each event. */
    private static List<String> stored(FlinkFixture cluster, String stream) {
        return cluster.query("SELECT s.shard_number, e.partition, coalesce(e.key, '-') FROM eventsql.events_" + stream
                + " e, eventsql.shard s");
    }

    /** As a stream is on a shard that will receive slots, if it was created after the givers have closed theirs. */
    @Test
    void append_mapIsClosed_storesNothingUntilItIsOpen() throws Exception {
        try (FlinkFixture cluster = new FlinkFixture();
                BatchAppender appender = appender(cluster, "closed", Duration.ZERO)) {
            cluster.eventSql.createStream(StreamSpec.of("closed").withPartitions(1));
            cluster.query("UPDATE eventsql.stream_partition SET map_version = -1");
            KeyRoutes routes = appender.findRoutes();
            Target target = routes.of("k");
            List<EventBatch> batches =
                    List.of(batch("closed", target, routes.mapVersion(target), SinkFixture.event("k")));
            assertThatIOException()
                    .isThrownBy(() -> appender.append(batches))
                    .withMessageContaining("map of the partitions is being changed");
            assertThat(stored(cluster, "closed")).isEmpty();

            cluster.query("UPDATE eventsql.stream_partition SET map_version = 2");
            appender.append(batches);
            appender.append(batches);
            assertThat(stored(cluster, "closed")).containsExactly(target.shard() + "|0|k");
        }
    }

    @Test
    void append_eachShardSaysThatKeysBelongToTheOther_waits() throws Exception {
        try (FlinkFixture cluster = new FlinkFixture();
                BatchAppender appender = appender(cluster, "circle", Duration.ZERO)) {
            cluster.eventSql.createStream(StreamSpec.of("circle").withPartitions(1));
            cluster.query("UPDATE eventsql.stream_partition SET map_version = -1");
            cluster.query("UPDATE eventsql.shard SET slot_map = array_fill((1 - shard_number)::smallint, ARRAY[1024])");
            List<EventBatch> batches =
                    List.of(batch("circle", new Target(0, 0), 1, SinkFixture.event("k"), SinkFixture.event(null)));
            assertThatIOException()
                    .isThrownBy(() -> appender.append(batches))
                    .withMessageContaining("map of the partitions is being changed");
            assertThat(stored(cluster, "circle")).isEmpty();
        }
    }

    @Test
    void append_shardHasLostItsSlots_eventsWithoutKeyGoElsewhere() throws Exception {
        try (FlinkFixture cluster = new FlinkFixture();
                BatchAppender appender = appender(cluster, "left", PATIENT)) {
            cluster.eventSql.moveShards(List.of(1));
            cluster.eventSql.createStream(StreamSpec.of("left").withPartitions(1));
            int unread = PartitionMap.UNREAD.version();
            List<EventBatch> routedBefore =
                    List.of(batch("left", new Target(0, 0), unread, SinkFixture.event("k"), SinkFixture.event(null)));
            appender.append(routedBefore);
            appender.append(routedBefore);
            assertThat(stored(cluster, "left")).containsExactlyInAnyOrder("1|0|k", "1|0|-");
        }
    }

    @Test
    void findRoutes_streamThatStayedWasDeletedAndCreatedAgain_areThoseOfTheLibrary() throws Exception {
        try (FlinkFixture cluster = new FlinkFixture();
                BatchAppender appender = appender(cluster, "again", PATIENT)) {
            StreamSpec moving = StreamSpec.of("again").withPartitions(2);
            cluster.eventSql.createStream(moving.withCompaction(Compaction.DEFAULT));
            assertThat(appender.findRoutes().slotMap()).contains(0, 1);
            cluster.eventSql.deleteStream(
                    "again", cluster.eventSql.previewDeleteStream("again").confirmation());
            cluster.eventSql.moveShards(List.of(1));
            cluster.eventSql.createStream(moving);
            KeyRoutes routes = appender.findRoutes();
            cluster.eventSql
                    .publisher()
                    .publishAll(
                            "again",
                            IntStream.range(0, KEYS)
                                    .mapToObj(n -> Event.ofText("k" + n, "v"))
                                    .toList());
            assertThat(stored(cluster, "again"))
                    .hasSize(KEYS)
                    .containsExactlyInAnyOrderElementsOf(IntStream.range(0, KEYS)
                            .mapToObj(n -> {
                                Target target = routes.of("k" + n);
                                return target.shard() + "|" + target.partition() + "|k" + n;
                            })
                            .toList());
        }
    }
}
