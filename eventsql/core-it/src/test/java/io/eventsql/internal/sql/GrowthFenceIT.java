package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Storage;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.AppendFixture;
import io.eventsql.internal.sql.BlockAppendStatement.Blocks;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/**
 * Goal: each function that appends answers a batch that is stored, whatever version of the map it has; any other batch with another
 * version is rejected, also one of the previous release, and nothing of it is stored.
 */
class GrowthFenceIT extends AppendFixture {
    private static final MapFence FORMER = MapFence.of(MAP_VERSION);
    private static final MapFence GROWN = MapFence.of(MAP_VERSION + 1);
    private static final BlockAppendStatement BLOCKS = new BlockAppendStatement(new SqlSchema("eventsql"));

    private static long[] append(UUID producer, long number, MapFence maps, Part... parts) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            return APPEND.execute(connection, producer, number, maps, null, rows(parts));
        }
    }

    private void assertFenced(Part... parts) throws SQLException {
        String grown = parts[0].stream();
        long[] stored = append(producer, 1, FORMER, parts);
        eventSql.grow(grown, 5);
        assertThat(append(producer, 1, FORMER, parts)).as("stored before").isEqualTo(stored);
        assertRejected("ES001", () -> append(producer, 2, FORMER, parts));
        UUID other = UUID.randomUUID();
        assertRejected("ES001", () -> append(other, 1, FORMER, parts));
        long events =
                List.of(parts).stream().mapToLong(part -> part.values().size()).sum();
        assertThat(number("SELECT count(*) FROM eventsql.events_" + grown)
                        + (parts.length > 1 && !parts[1].stream().equals(grown)
                                ? number("SELECT count(*) FROM eventsql.events_" + parts[1].stream())
                                : 0))
                .as("nothing of the rejected batches")
                .isEqualTo(events);
    }

    @Test
    void append_onePartition_isFencedAfterItsNumber() throws SQLException {
        createStream("one", 2);
        assertFenced(Part.of("one", 0, "a", "b"));
        assertThat(append(producer, 2, GROWN, Part.of("one", 4, "c"))).containsExactly(0);
    }

    @Test
    void append_severalPartitions_isFencedAfterItsNumber() throws SQLException {
        createStream("several", 2);
        assertFenced(Part.of("several", 0, "a"), Part.of("several", 1, "b", "c"));
        assertThat(append(producer, 2, GROWN, Part.of("several", 1, "c"), Part.of("several", 2, "d")))
                .containsExactly(2, 0);
    }

    @Test
    void append_severalStreams_isFencedAfterItsNumber() throws SQLException {
        createStream("first", 2);
        createStream("second", 2);
        assertFenced(Part.of("first", 0, "a"), Part.of("second", 1, "b", "c"));
        MapFence each = MapFence.of(new int[] {MAP_VERSION + 1, MAP_VERSION});
        Part[] parts = {Part.of("first", 3, "d"), Part.of("second", 1, "e")};
        assertThat(append(producer, 2, each, parts)).containsExactly(0, 2);
        eventSql.grow("second", 4);
        assertThat(append(producer, 2, each, parts)).as("stored before").containsExactly(0, 2);
        assertRejected("ES001", () -> append(producer, 3, each, parts));
        assertThat(append(producer, 3, GROWN, parts)).containsExactly(1, 3);
        assertThat(read("second")).hasSize(4);
    }

    private static Blocks blocks(String... streams) throws SQLException {
        BlockAppendStatement.Packer packer = new BlockAppendStatement.Packer(streams.length);
        for (String stream : streams) {
            packer.begin(
                    stream, (int) number("SELECT stream_id FROM eventsql.stream WHERE name = '" + stream + "'"), 1);
            packer.add("k", "v".getBytes(StandardCharsets.UTF_8), null);
        }
        return packer.finish();
    }

    private static long[] append(UUID producer, long number, MapFence maps, Blocks blocks) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            return BLOCKS.execute(connection, producer, number, maps, null, blocks);
        }
    }

    @Test
    void appendBlocks_isFencedAfterItsNumber() throws SQLException {
        for (String stream : List.of("packed", "other_packed")) {
            eventSql.createStream(StreamSpec.of(stream).withPartitions(2).withStorage(Storage.BLOCKS));
        }
        Blocks one = blocks("packed");
        Blocks both = blocks("packed", "other_packed");
        assertThat(append(producer, 1, FORMER, one)).containsExactly(0);
        assertThat(append(producer, 2, FORMER, both)).containsExactly(1, 0);
        eventSql.grow("packed", 3);
        assertThat(append(producer, 2, FORMER, both)).as("stored before").containsExactly(1, 0);
        assertRejected("ES001", () -> append(producer, 3, FORMER, one));
        assertRejected("ES001", () -> append(producer, 3, FORMER, both));
        MapFence each = MapFence.of(new int[] {MAP_VERSION + 1, MAP_VERSION});
        assertThat(append(producer, 3, each, both)).containsExactly(2, 1);
        assertThat(append(producer, 3, each, both)).containsExactly(2, 1);
        assertThat(append(producer, 4, GROWN, one)).containsExactly(3);
    }
}
