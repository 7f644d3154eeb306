package io.eventsql.internal.retain;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.Storage;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Compaction of streams that store blocks. */
class CompactionOfBlocksIT extends CompactionContract {
    @Override
    Storage storage() {
        return Storage.BLOCKS;
    }

    /** The array of distances of many small events takes more than those that are removed. */
    @Test
    void fullBlockLosesFewSmallEvents_isCutAndStaysInline() throws SQLException {
        StreamSpec stream = CompactionFixture.newStream(storage()).withSegmentSize(1_000);
        eventSql.createStream(stream);
        List<String> keys = IntStream.range(0, 1_000)
                .mapToObj(i -> i % 100 == 7 ? "same" : "k" + i)
                .toList();
        eventSql.publisher()
                .publishAll(
                        stream.name(),
                        keys.stream().map(key -> Event.ofText(key, "x")).toList());
        long blocks = Sql.queryLong(fixture.database, "SELECT count(*) FROM " + fixture.table(stream.name()));
        fixture.compact();
        assertThat(fixture.readAll(stream.name(), 0, 0, 300))
                .extracting(StoredEvent::key)
                .containsExactlyElementsOf(IntStream.range(0, 1_000)
                        .filter(i -> i % 100 != 7 || i == 907)
                        .mapToObj(keys::get)
                        .toList());
        assertThat(Sql.queryLong(fixture.database, "SELECT count(*) FROM " + fixture.table(stream.name())))
                .isGreaterThan(blocks);
        assertThat(Sql.queryLong(
                        fixture.database,
                        "SELECT sum(pg_relation_size(c.reltoastrelid)) FROM pg_partition_tree('"
                                + fixture.table(stream.name())
                                + "') t JOIN pg_class c ON c.oid = t.relid WHERE c.reltoastrelid <> 0"))
                .as("moved out of line")
                .isZero();
    }
}
