package io.eventsql.reader;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventSql;
import io.eventsql.StreamSpec;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Goal: a reader needs the databases of all shards that have events, and notices while it runs that there are more. Positions
 * on a shard that was removed need no database.
 */
@Timeout(120)
class MovedShardsIT {
    private static final String STREAM = "moving";

    @Test
    void ranges_keysMoveToAShardThatWasNotGiven_failsUntilItIsRemoved() {
        try (TestDatabases two = new TestDatabases(2)) {
            two.eventSql.createStream(StreamSpec.of(STREAM).withPartitions(2));
            List<DataSource> all = new ArrayList<>(two.shards);
            all.add(TestDatabases.newDatabase());
            StreamPartition removed = new StreamPartition(STREAM, 2, 0);
            ReadPosition position;
            List<HikariDataSource> pools = all.stream().map(TestDatabases::pool).toList();
            try (EventReader reader = EventReader.open(two.shards);
                    EventSql three = EventSql.builder(pools).addShards().build()) {
                assertThat(reader.ranges(STREAM))
                        .as("the spare shard is not needed")
                        .hasSize(4);
                three.moveShards(List.of(0, 1, 2));
                publish(three);
                assertThatExceptionOfType(ShardIdentityException.class)
                        .isThrownBy(() -> reader.ranges(STREAM))
                        .withMessageContaining("but 2 databases are given");
                assertThatExceptionOfType(ShardIdentityException.class)
                        .isThrownBy(() -> EventReader.open(two.shards).ranges(STREAM));
                try (EventReader ofAll = EventReader.open(all)) {
                    assertThat(ofAll.ranges(STREAM)).hasSize(6);
                    assertThat(ofAll.shards()).isEqualTo(3);
                    position = ofAll.read(removed, ReadPosition.at(0)).next();
                    assertThat(position.offset()).isPositive();
                }
                three.moveShards(List.of(0, 1));
                three.clear(STREAM, three.previewClear(STREAM).confirmation());
                three.removeShard(2);
                try (EventReader again = EventReader.open(two.shards)) {
                    assertThat(again.ranges(STREAM))
                            .extracting(range -> range.partition().shard())
                            .containsOnly(0, 1);
                    assertThat(again.ranges(STREAM, 2)).isEmpty();
                    assertPositionIsAtTheHead(again, removed, position);
                }
            } finally {
                pools.forEach(HikariDataSource::close);
            }
        }
    }

    private static void assertPositionIsAtTheHead(EventReader reader, StreamPartition removed, ReadPosition position) {
        assertThat(reader.read(removed, position)).isEqualTo(new PartitionPage(removed, List.of(), position, true));
        PageRequest finished = new PageRequest(removed, position, position.offset());
        assertThat(reader.read(List.of(finished))).hasSize(1);
        PageRequest unfinished = new PageRequest(removed, position, position.offset() + 1);
        assertThatExceptionOfType(EventReaderException.class)
                .isThrownBy(() -> reader.read(List.of(finished, unfinished)))
                .withMessageContaining("the shard was removed from the cluster");
        assertThatExceptionOfType(IllegalArgumentException.class)
                .isThrownBy(() -> reader.read(new StreamPartition(STREAM, 3, 0), position));
    }

    private static void publish(EventSql eventSql) {
        eventSql.publisher()
                .publishAll(
                        STREAM,
                        IntStream.range(0, 60)
                                .mapToObj(i -> Event.ofText("key-" + i, Integer.toString(i)))
                                .toList());
    }
}
