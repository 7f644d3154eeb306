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

/** Goal: a reader needs the databases of all shards that have events, and notices while it runs that there are more. */
@Timeout(120)
class MovedShardsIT {
    private static final String STREAM = "moving";

    @Test
    void ranges_keysMoveToAShardThatWasNotGiven_failsUntilItIsRemoved() {
        try (TestDatabases two = new TestDatabases(2)) {
            two.eventSql.createStream(StreamSpec.of(STREAM).withPartitions(2));
            List<DataSource> all = new ArrayList<>(two.shards);
            all.add(TestDatabases.server().createDatabase("reader_added"));
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
                }
                three.moveShards(List.of(0, 1));
                three.clear(STREAM, three.previewClear(STREAM).confirmation());
                three.removeShard(2);
                try (EventReader again = EventReader.open(two.shards)) {
                    assertThat(again.ranges(STREAM))
                            .extracting(range -> range.partition().shard())
                            .containsOnly(0, 1);
                    assertThat(again.ranges(STREAM, 2)).isEmpty();
                }
            } finally {
                pools.forEach(HikariDataSource::close);
            }
        }
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
