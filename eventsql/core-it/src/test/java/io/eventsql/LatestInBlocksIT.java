package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.fixture.Sql;
import java.sql.SQLException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The last event of a key in streams that store blocks. */
class LatestInBlocksIT extends LatestIT {
    @Override
    Storage storage() {
        return Storage.BLOCKS;
    }

    @Override
    long removedMin() {
        return 200;
    }

    /** As of a key with the same hash, or of a search that continues below an offset inside of a block. */
    @Test
    void search_blockHasTheKeyOutsideOfTheRange_continuesBelowIt() throws SQLException {
        open(StreamSpec.of(stream).withPartitions(1).withSegmentSize(1_000).withStorage(storage()));
        for (int block = 0; block < 40; block++) {
            int first = 10 * block;
            eventSql.publisher()
                    .publishAll(
                            stream,
                            IntStream.range(first, first + 10)
                                    .mapToObj(i -> Event.ofText(i == 3 || i == 395 ? "key" : "k" + i, "x"))
                                    .toList());
        }
        for (int newest : new int[] {0, 16}) {
            assertThat(find(0, 400, newest)).isEqualTo("395");
            assertThat(find(0, 395, newest)).isEqualTo("3");
            assertThat(find(4, 395, newest)).isEmpty();
        }
    }

    private String find(int from, int below, int newest) throws SQLException {
        return String.join(
                " ",
                Sql.query(
                        cluster.dataSources().getFirst(),
                        "SELECT event_offset FROM eventsql.find_latest_in_blocks_v1(?, 'key', ?, ?, ?)",
                        "events_" + stream + "__p0_s0",
                        (long) from,
                        (long) below,
                        newest));
    }
}
