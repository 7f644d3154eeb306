package io.eventsql.internal.shard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.awaitility.Awaitility.await;

import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import io.eventsql.fixture.SwitchableDataSource;
import io.eventsql.fixture.TestCluster;
import io.eventsql.fixture.TestStreams;
import io.eventsql.internal.sql.StreamPendingException;
import java.sql.SQLException;
import java.util.List;
import javax.sql.DataSource;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A shard that was unavailable when a stream was created: what reads the stream does not create it, what writes does.
 */
@Timeout(60)
class ShardIT {
    private static TestCluster cluster;
    private static DataSource withoutStream;

    private final String name = TestStreams.newName();
    private final StreamSpec stream = StreamSpec.of(name).withPartitions(2);

    @BeforeAll
    static void createCluster() {
        cluster = TestCluster.ofShards(2);
        try (EventSql eventSql = cluster.open()) {
            withoutStream = eventSql.shards().get(1).dataSource();
        }
    }

    @BeforeEach
    void createStreamOnOneOfTwoShards() throws SQLException {
        Shards shards = open();
        shards.get(0).streams().create(stream);
        shards.close();
    }

    @AfterAll
    static void close() {
        cluster.close();
    }

    private static Shards open() {
        return Shards.open(cluster.dataSources(), Settings.builder().build());
    }

    private List<String> storedStreams() throws SQLException {
        return Sql.query(withoutStream, "SELECT name FROM eventsql.stream WHERE name = ?", name);
    }

    @Test
    void findStreamId_shardWithoutTheStream_isEmptyAndCreatesNothing() throws SQLException {
        Shards shards = open();
        assertThat(shards.get(0).streams().findId(stream)).isPresent();
        assertThat(shards.get(1).streams().findId(stream)).isEmpty();
        assertThat(storedStreams()).isEmpty();
        shards.close();
    }

    @Test
    void ensureStream_shardWithoutTheStream_createsIt() throws SQLException {
        Shards shards = open();
        int id = shards.get(1).streams().ensure(stream);
        assertThat(shards.get(1).streams().findId(stream)).hasValue(id);
        assertThat(storedStreams()).containsExactly(name);
        shards.close();
    }

    @Test
    void ensureStream_streamHasOtherSettingsElsewhere_createsItWithThese() throws SQLException {
        Shards shards = open();
        assertThat(new StreamRegistry(shards).require(name)).isEqualTo(stream);
        shards.get(1).streams().ensure(stream.withSegmentSize(1_234));
        assertThat(Sql.query(withoutStream, "SELECT segment_size FROM eventsql.stream WHERE name = ?", name))
                .containsExactly(Long.toString(stream.segmentSize()));
        shards.close();
    }

    @Test
    void ensureStream_streamHasOtherPartitionsElsewhere_failsAndCreatesNothing() throws SQLException {
        Shards shards = open();
        StreamRegistry streams = new StreamRegistry(shards);
        assertThat(streams.require(name)).isEqualTo(stream);
        StreamSpec remembered = stream.withPartitions(5);
        for (Shard shard : shards.all()) {
            assertThatExceptionOfType(SQLException.class)
                    .isThrownBy(() -> shard.streams().ensure(remembered))
                    .withMessageContaining("created anew with other partitions");
        }
        assertThatExceptionOfType(SQLException.class)
                .isThrownBy(() -> shards.get(1).streams().readOrCreate(remembered))
                .withMessageContaining("created anew with other partitions");
        assertThat(storedStreams()).isEmpty();
        shards.close();
    }

    /** The stream of the unavailable shard may be another one than is remembered. */
    @Test
    void ensureStream_otherShardIsUnavailable_createsItLater() throws SQLException {
        SwitchableDataSource other =
                new SwitchableDataSource(cluster.dataSources().get(0));
        Shards shards = Shards.open(
                List.of(other, cluster.dataSources().get(1)), Settings.builder().build());
        assertThat(new StreamRegistry(shards).require(name)).isEqualTo(stream);
        other.setAvailable(false);
        assertThatExceptionOfType(StreamPendingException.class)
                .isThrownBy(() -> shards.get(1).streams().ensure(stream))
                .withMessageContaining("is unavailable");
        assertThat(storedStreams()).isEmpty();
        other.setAvailable(true);
        await().ignoreExceptions().until(() -> shards.get(1).streams().ensure(stream) > 0);
        assertThat(storedStreams()).containsExactly(name);
        shards.close();
    }

    @Test
    void reading_shardWithoutTheStream_findsNothingAndCreatesNothing() throws SQLException {
        try (EventSql eventSql = cluster.open()) {
            assertThat(eventSql.read(new EventPosition(name, 1, 0, 0), 10)).isEmpty();
            assertThat(eventSql.positions(name, "c")).isEmpty();
            assertThat(eventSql.previewClear(name).events()).isZero();
            assertThat(storedStreams()).isEmpty();
        }
    }
}
